package pgpool

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Login has the user and the password of new connections. It can be changed while pools are in use. Open connections
// keep the user and the password with which they were opened. With a nil Login, connections use those of the URL. All
// methods are safe for concurrent use.
type Login struct{ current atomic.Pointer[pair] }

type pair struct{ user, password string }

// Set sets the user and the password of connections that are opened from now on.
func (l *Login) Set(user, password string) { l.current.Store(&pair{user, password}) }

// Apply sets the user and the password of a connection that is about to be opened. It always returns nil. It has an
// error result only because BeforeConnect of pgxpool requires one.
func (l *Login) Apply(_ context.Context, cfg *pgx.ConnConfig) error {
	if l == nil {
		return nil
	}
	if p := l.current.Load(); p != nil {
		cfg.User, cfg.Password = p.user, p.password
	}
	return nil
}
