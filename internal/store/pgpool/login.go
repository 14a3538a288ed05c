package pgpool

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Login has the user and the password of new connections. It can be changed while pools are in use; open connections
// keep their user and password. A nil Login uses user and password of the URL. All methods are safe for concurrent
// use.
type Login struct{ current atomic.Pointer[pair] }

type pair struct{ user, password string }

// Set sets the user and the password of connections that are opened from now on.
func (l *Login) Set(user, password string) { l.current.Store(&pair{user, password}) }

// Apply sets user and password of a connection that is about to be opened. It never fails: it has an error only to
// fit BeforeConnect of pgxpool.
func (l *Login) Apply(_ context.Context, cfg *pgx.ConnConfig) error {
	if l == nil {
		return nil
	}
	if p := l.current.Load(); p != nil {
		cfg.User, cfg.Password = p.user, p.password
	}
	return nil
}
