package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// tx is one transaction of a batch on one connection. The connection is from the writers, or, for checks, from the
// readers.
type tx struct {
	ledger *Ledger
	conn   *pgx.Conn
	batch  *ledger.Batch
	// locked are the plan's balances that another transaction has locked. It is empty if the plan waits for locks.
	locked keySet
	// newBalances are the plan's balances that have no row yet. If the batch changes them, it creates the rows.
	newBalances keySet
	ahead       *loading           // rows that were read with the lock, for all balances of the plan; nil: none
	subscribers events.Subscribers // tenants with a webhook for opened periods
	began       time.Time          // the instance's clock, before PostgreSQL's clock was read
	// termsChanged is the instant at which terms last changed for a tenant that may already have balances.
	termsChanged time.Time
	plansChanged time.Time // the instant of the newest version of any plan, without first versions; epoch: none
	// changedNow has, by tenant, the instant at which terms that apply at once were last made. Tenants without such
	// terms are missing.
	changedNow  map[string]time.Time
	newestMonth ledger.Month // the latest month that holds entries
}

// inTx runs the function `do` on a connection of the writers, and rolls back if it fails. On Citus, all rows that it
// reads and writes belong to the shard group of the plan's calls. If p is nil, the transaction runs on the
// coordinator.
func (l *Ledger) inTx(ctx context.Context, p *plan, do func(ctx context.Context, t *tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime(ctx))
	defer cancel()
	pool := l.writers
	if l.nodes != nil {
		pool = l.writersFor(p)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil && pool != l.writers { // the coordinator serves the group until the node is reached again
		l.nodes.Lost(pool, err)
		pool = l.writers
		conn, err = pool.Acquire(ctx)
	}
	if err != nil {
		return fmt.Errorf("acquire writer connection: %w", err)
	}
	defer conn.Release()
	t := &tx{ledger: l, conn: conn.Conn(), batch: ledger.NewBatch()}
	if err = do(ctx, t); err != nil {
		l.restoreCode(err)
		t.rollBack(ctx)
		err = l.createPartition(ctx, conn, pool, err)
		t.dropIfReadOnly(err)
		if t.conn.IsClosed() {
			// If one connection died, the idle connections are most likely dead as well.
			pool.Reset()
		}
	}
	return err
}

// attemptTime returns how long an attempt within ctx may take: it leaves time for another attempt.
func attemptTime(ctx context.Context) time.Duration {
	end, ends := ctx.Deadline()
	if !ends {
		return attemptTimeout
	}
	left := time.Until(end)
	if left > 2*rerunReserve {
		left -= rerunReserve
	}
	return min(left, attemptTimeout)
}

// errRolledBack reports that PostgreSQL answered COMMIT with ROLLBACK.
var errRolledBack = errors.New("ledger: transaction was rolled back at commit")

// queueCommit queues COMMIT and turns PostgreSQL's silent ROLLBACK into an error.
func queueCommit(out *pgx.Batch) {
	out.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errRolledBack
		}
		return nil
	})
}

func (t *tx) rollBack(ctx context.Context) {
	if t.conn.IsClosed() {
		return
	}
	// If this fails, the pool closes the connection, which is inside a failed transaction.
	_, _ = t.conn.Exec(ctx, "ROLLBACK")
}

// dropIfReadOnly closes a connection to a server that was demoted, so that the pool dials the new primary.
func (t *tx) dropIfReadOnly(err error) {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "25006" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = t.conn.Close(ctx)
	}
}

// send runs queued statements in one round trip.
func send(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) error {
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("pipelined batch: %w", err)
	}
	return nil
}
