package proven

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// Visitor is the client of one connection.
type Visitor struct {
	known atomic.Bool
	first func() // called once, when the visitor becomes known
}

// New returns a visitor that is not known. It calls the function `first` when the visitor becomes known.
func New(first func()) *Visitor { return &Visitor{first: first} }

// Known reports whether the visitor has shown something right.
func (v *Visitor) Known() bool { return v != nil && v.known.Load() }

// Note makes the visitor known.
func (v *Visitor) Note() {
	if v != nil && !v.known.Load() && !v.known.Swap(true) {
		v.first()
	}
}

// Addr is the remote address of a connection, with its visitor.
type Addr struct {
	net.Addr
	*Visitor
}

// key is the type of the context key of a visitor.
type key struct{}

// With returns a context of a request by v.
func With(ctx context.Context, v *Visitor) context.Context { return context.WithValue(ctx, key{}, v) }

// Of returns the visitor whose request has this context. It returns nil if there is none.
func Of(ctx context.Context) *Visitor {
	v, _ := ctx.Value(key{}).(*Visitor)
	return v
}

// closing is the header that Doubt sets. Trust recognises it by its address.
var closing = []string{"close"}

// Doubt makes the answer close the connection, unless its visitor is known.
func Doubt(w http.ResponseWriter, r *http.Request) {
	if h := w.Header(); h["Connection"] == nil && !Of(r.Context()).Known() {
		h["Connection"] = closing
	}
}

// Trust makes the visitor known, and takes back Doubt for this answer.
func Trust(w http.ResponseWriter, r *http.Request) {
	Of(r.Context()).Note()
	if h := w.Header(); len(h["Connection"]) == 1 && &h["Connection"][0] == &closing[0] {
		delete(h, "Connection")
	}
}
