package history

import (
	"embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/namedsql"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// readTimeout bounds one read with all its statements.
const readTimeout = 3 * time.Second

// Reader answers questions about the past. All methods are safe for concurrent use.
type Reader struct {
	ledger *pg.Ledger // views of the open period
	pool   *pgxpool.Pool
	sql    map[string]string
}

// New returns a reader that uses l's views and its pool for reads.
func New(l *pg.Ledger) (*Reader, error) {
	sql, err := namedsql.Load(sqlFiles)
	if err != nil {
		return nil, err
	}
	return &Reader{ledger: l, pool: l.Readers(), sql: sql}, nil
}

// unavailable wraps a failed read: nothing was changed, a retry is safe.
func unavailable(what string, err error) *ledger.Error {
	return &ledger.Error{
		Code: ledger.CodeUnavailable, Detail: "the ledger cannot reach its database", RetryAfter: time.Second,
		Cause: fmt.Errorf("%s: %w", what, err),
	}
}
