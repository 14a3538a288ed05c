package pgpool

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Login is the user and the password of new connections. It can be changed while pools are in use; connections that are
// open stay as they are. A nil Login uses those of the URL. All methods are safe for concurrent use.
type Login struct{ current atomic.Pointer[pair] }

type pair struct{ user, password string }

// Set sets the user and the password of connections that are opened from now on.
func (l *Login) Set(user, password string) { l.current.Store(&pair{user, password}) }

// Apply sets user and password of a connection that is about to be opened. It never fails: its type is that of
// pgxpool's BeforeConnect.
func (l *Login) Apply(_ context.Context, cfg *pgx.ConnConfig) error {
	if l == nil {
		return nil
	}
	if p := l.current.Load(); p != nil {
		cfg.User, cfg.Password = p.user, p.password
	}
	return nil
}
