package access

import "context"

// madeUp is the type of the context key under which As stores a key.
type madeUp struct{}

// As returns a context whose requests have the rights of k without a secret. Pages of this process use it when they
// call the API for people who signed in without a key. Only this process can create such a context. Authenticate uses
// k if the request has no secret.
func As(ctx context.Context, k *Key) context.Context { return context.WithValue(ctx, madeUp{}, k) }

// made returns the key that As put into ctx. It returns nil if there is no such key.
func made(ctx context.Context) *Key {
	k, _ := ctx.Value(madeUp{}).(*Key)
	return k
}
