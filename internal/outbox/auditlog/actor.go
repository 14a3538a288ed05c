package auditlog

import "context"

// The ids of actors that are not stored keys.
const (
	Bootstrap = "bootstrap" // the admin key of the configuration
	Command   = "command"   // a command that works directly on the database
)

// Actor is the user, command or service that makes a change.
type Actor struct {
	KeyID     string // empty: the service itself
	Name      string // name of the key, or of the command
	Tenant    string // the tenant to which the key is bound; empty: none
	RequestID string // empty for commands
	IP        string // the client's address; empty for commands
	Admin     bool   // the key has the scope admin; the audit log records its changes
}

// Key is the type of the context key under which a context has its actor. A context type with its own Value method
// may return an *Actor for this key.
type Key struct{}

// With returns a context in which a is the actor of all changes.
func With(ctx context.Context, a *Actor) context.Context { return context.WithValue(ctx, Key{}, a) }

var (
	key    Key
	nobody Actor // the actor of a context without an actor
)

// From returns the actor of ctx. The result is never nil and must not be changed. If ctx has no actor, the KeyID of
// the result is empty.
func From(ctx context.Context) *Actor {
	if a, _ := ctx.Value(key).(*Actor); a != nil {
		return a
	}
	return &nobody
}
