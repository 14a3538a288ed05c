package access

import "context"

// madeUp is the key under which a context has a key that was not sent.
type madeUp struct{}

// As returns a context whose requests are those of k, without a secret: pages of this process call the API so, for people who signed in without a
// key. Only this process can make such a context. Authenticate looks for it where no secret was sent.
func As(ctx context.Context, k *Key) context.Context { return context.WithValue(ctx, madeUp{}, k) }

// made returns the key that As gave to a context; nil: none.
func made(ctx context.Context) *Key {
	k, _ := ctx.Value(madeUp{}).(*Key)
	return k
}
