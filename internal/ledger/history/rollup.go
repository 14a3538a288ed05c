package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/metric"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgpool"
)

const (
	// rollupEvery is the largest number of entries between two rows of rollups. A sum reads at most about twice as many
	// entries. A row takes about 300 bytes, 0.5 % of the entries that it covers.
	rollupEvery = 500
	// rollupLeast is how many entries after a row are enough for another row at the end of a half hour. With rows at
	// these ends, use by hour and by day reads no entries. With a smaller number, rows would take more than 1 % of the
	// size of their entries.
	rollupLeast = 100
	// rollupPause is the pause after a row, as a multiple of the time that the row took. With this pause, a writer
	// that catches up uses a fifth of a core.
	rollupPause = 4
	// passEvery is the pause between two passes over all balances. A pass reads passBalances at a time, and pauses
	// for passPause between them.
	passEvery    = time.Minute
	passBalances = 2000
	passPause    = 200 * time.Millisecond
	// hintsMax bounds the hints that wait. The next pass finds the balances of other hints.
	hintsMax = 256
	// HintOneIn is the average number of commits from one call of Hint to the next. A balance that grows by rollupEvery
	// entries in fewer commits waits for the next pass.
	HintOneIn = 100
	// writeTimeout bounds the writing of one row. Writing reads rollupEvery entries, or, before the border of an
	// archive, all entries that have no row yet.
	writeTimeout = 30 * time.Second
)

// RollupConfig configures Rollups.
type RollupConfig struct {
	DatabaseURL string                // PostgreSQL, required
	Log         *slog.Logger          // required
	Metrics     prometheus.Registerer // required
	Target      namedsql.Target       // whether the tables are distributed over a Citus cluster
	Login       *pgpool.Login         // changes user and password of new connections; nil: those of the URL
}

// Rollups writes the rows of table rollups: cumulative sums of a balance at the ends of half hours, and at least every
// 500 entries. It works in the background. Commits give hints about balances that grow, and a pass over all balances
// each minute finds the other balances that lack rows. Any number of instances may write at once, because all write the
// same rows. All methods are safe for concurrent use.
type Rollups struct {
	log     *slog.Logger
	pool    *pgxpool.Pool
	sql     map[string]string
	every   int64 // rollupEvery
	least   int64 // rollupLeast
	rest    int   // rollupPause
	written prometheus.Counter
	hints   chan ledger.BalanceKey
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// OpenRollups prepares a writer with a connection of its own. It does not wait for PostgreSQL.
func OpenRollups(ctx context.Context, cfg RollupConfig) (*Rollups, error) {
	w := &Rollups{
		log: cfg.Log, sql: namedsql.Must(cfg.Target, sqlFiles), every: rollupEvery, least: rollupLeast, rest: rollupPause, hints: make(chan ledger.BalanceKey, hintsMax), cancel: func() {},
	}
	var err error
	if w.pool, err = newPool(ctx, cfg.Target, cfg.DatabaseURL, cfg.Login, nil, 1, "quotasvc-rollups", writeTimeout); err != nil {
		return nil, err
	}
	w.written = metric.Counter(cfg.Metrics, "quotasvc_history_rollups_total",
		"Rows of cumulative sums written: one per 100 to 500 entries of a balance.")
	return w, nil
}

// Start begins to write rows in the background.
func (w *Rollups) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.done.Go(func() { w.run(ctx) })
}

// Stop ends the work and closes the connection.
func (w *Rollups) Stop(context.Context) error {
	w.cancel()
	w.done.Wait()
	w.pool.Close()
	return nil
}

// Hint records the large balances among the changed balances. It does not block. One commit in HintOneIn is enough.
func (w *Rollups) Hint(changed []ledger.BalanceCopy) {
	for i := range changed {
		if changed[i].Seq < w.every {
			continue
		}
		select {
		case w.hints <- ledger.BalanceKey{Tenant: changed[i].Tenant, Meter: changed[i].Meter, Subject: changed[i].Subject}:
		default: // the next pass finds this balance
		}
	}
}

func (w *Rollups) run(ctx context.Context) {
	next := time.NewTimer(passEvery)
	defer next.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case k := <-w.hints:
			err = w.CatchUp(ctx, k)
		case <-next.C:
			err = w.Pass(ctx)
			next.Reset(passEvery)
		}
		if err != nil && ctx.Err() == nil {
			w.log.Warn("sums of the journal were not written; questions about the past take longer", "error", err)
			backoff.Sleep(ctx, time.Second)
		}
	}
}

// Pass reads all balances, and writes the missing rows of balances that have grown.
func (w *Rollups) Pass(ctx context.Context) error {
	var after ledger.BalanceKey
	for {
		last, grown, err := w.look(ctx, after)
		if err != nil {
			return err
		}
		for _, k := range grown {
			if err := w.CatchUp(ctx, k); err != nil {
				return err
			}
		}
		if last == after {
			return nil
		}
		after = last
		backoff.Sleep(ctx, passPause)
	}
}

// look reads the next balances after a key. It returns the last of these balances (if there are no more balances, the
// given key), and the balances that lack a row.
func (w *Rollups) look(ctx context.Context, after ledger.BalanceKey) (last ledger.BalanceKey, grown []ledger.BalanceKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	last = after
	rows, _ := w.pool.Query(ctx, w.sql["LargeBalances"], after.Tenant, after.Meter, after.Subject, passBalances, w.every)
	var misses bool
	var k ledger.BalanceKey
	_, err = pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &misses}, func() error {
		last = k
		if misses {
			grown = append(grown, k)
		}
		return nil
	})
	if err != nil {
		return last, nil, unavailable("look for balances that have grown", err)
	}
	return last, grown, nil
}

// CatchUp writes the missing rows of a balance, with a pause after each row.
func (w *Rollups) CatchUp(ctx context.Context, k ledger.BalanceKey) error {
	for ctx.Err() == nil {
		began := time.Now()
		wrote, err := w.write(ctx, k, 0)
		if err != nil || !wrote {
			return err
		}
		backoff.Sleep(ctx, time.Since(began)*time.Duration(w.rest))
	}
	return ctx.Err()
}

// RollupTo writes the rows of a balance up to entry seq, and a row for seq itself. Entry seq must be the last entry
// of its operation. Afterwards all older entries may be archived, because sums from seq on do not need them.
func (w *Rollups) RollupTo(ctx context.Context, k ledger.BalanceKey, seq int64) error {
	for ctx.Err() == nil {
		done, missing, err := w.state(ctx, k, seq)
		if err != nil || done {
			return err
		}
		to := int64(0)
		if missing <= w.every {
			to = seq
		}
		if wrote, err := w.write(ctx, k, to); err != nil {
			return err
		} else if !wrote && to == 0 { // the operation at the next border ends after seq
			if _, err := w.write(ctx, k, seq); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// state reports whether balance k has a row for entry seq, and how many entries up to seq are in no row.
func (w *Rollups) state(ctx context.Context, k ledger.BalanceKey, seq int64) (done bool, missing int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var newest int64
	if err := w.pool.QueryRow(ctx, w.sql["RollupBefore"], k.Tenant, k.Meter, k.Subject, seq).Scan(&newest); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return false, 0, unavailable("read sums", err)
	}
	return newest == seq, seq - newest, nil
}

// write writes the next row of a balance, or the row of entry seq if seq is above 0. It reports whether it wrote a
// row.
func (w *Rollups) write(ctx context.Context, k ledger.BalanceKey, seq int64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var to int64
	err := w.pool.QueryRow(ctx, w.sql["NextRollup"], k.Tenant, k.Meter, k.Subject, w.every, seq, w.least).Scan(&to)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write sums of %v: %w", k, err)
	}
	w.written.Inc()
	return true, nil
}
