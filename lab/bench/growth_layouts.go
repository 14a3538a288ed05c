package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/lab/bench/growth"
	"github.com/quotasvc/quotasvc/lab/bench/past"
)

const (
	schemaFillfactor = 60  // fillfactor of balances in the schema
	layoutBatch      = 500 // debits per request

	// statsTimeout is the time limit of the wait until sessions have ended. A session reports its statistics when it
	// ends.
	statsTimeout = 10 * time.Second
)

// balancesOf returns the number of balances for a number of debits. Each balance gets a hundred debits, so that every
// page of the table becomes full at some time.
func balancesOf(debits int) int { return max(1, debits/100) }

// snapshotPart divides the number of debits of a layout with an open snapshot. In such a layout, each debit makes the
// table larger and the next debit slower. openSnapshot is the label of such a layout.
const (
	snapshotPart = 5
	openSnapshot = "beside an open snapshot, a fifth of the debits"
)

// layoutSetting is one setting of the storage of the table balances.
type layoutSetting struct {
	label      string
	fillfactor int
	set        string // additional SQL statement
	snapshot   bool   // a transaction keeps a snapshot open, as a dump or a report does; fewer debits are made
}

func (g *grower) layoutSettings() (all []layoutSetting) {
	for _, f := range g.cfg.Sizes.Fillfactors {
		label := fmt.Sprint(f)
		if f == schemaFillfactor {
			label = growth.AsMigrated
		}
		all = append(all, layoutSetting{label: label, fillfactor: f})
	}
	open := layoutSetting{fmt.Sprintf("%d, %s", schemaFillfactor, openSnapshot), schemaFillfactor, "", true}
	if len(all) == 1 {
		return append(all, open) // a run with a single fillfactor measures few layouts
	}
	widest := g.cfg.Sizes.Fillfactors[len(g.cfg.Sizes.Fillfactors)-1]
	return append(all,
		layoutSetting{"60, autovacuum by default", schemaFillfactor, "ALTER TABLE balances RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay)", false},
		layoutSetting{"60, autovacuum off", schemaFillfactor, "ALTER TABLE balances SET (autovacuum_enabled = false)", false},
		open,
		layoutSetting{fmt.Sprintf("%d, %s", widest, openSnapshot), widest, "", true},
	)
}

// layouts measures the table balances with several settings of its storage, one after the other.
func (g *grower) layouts(ctx context.Context) (out growth.Step, err error) {
	settings := g.layoutSettings()
	for i, set := range settings {
		g.at(float64(i) / float64(len(settings)))
		l, err := g.layout(ctx, &set)
		if err = errors.Join(err, g.clear()); err != nil {
			return out, fmt.Errorf("%s: %w", set.label, err)
		}
		out.Layouts = append(out.Layouts, l)
		g.at(float64(i+1) / float64(len(settings)))
		g.say("%-28s %.0f debits/s, %.1f %% HOT, size %.2f x", l.Label, l.PerSecond, 100*l.Hot, l.Bloat())
	}
	return out, nil
}

func (g *grower) layout(ctx context.Context, set *layoutSetting) (l growth.Layout, err error) {
	l = growth.Layout{Label: set.label, Fillfactor: set.fillfactor, Balances: balancesOf(g.cfg.Sizes.Debits), Dead: -1, Free: -1}
	h := past.Yearly(l.Balances, 1, time.Now())
	statements := []string{fmt.Sprintf("ALTER TABLE balances SET (fillfactor = %d)", set.fillfactor)}
	if set.set != "" {
		statements = append(statements, set.set)
	}
	s, err := g.add(ctx, nil, set.label, float64(set.fillfactor), h, 0, statements...)
	if err != nil {
		return l, err
	}
	if err := g.execute(ctx, s.database, "VACUUM FULL balances"); err != nil { // applies the fillfactor
		return l, err
	}
	if err := g.execute(ctx, s.database, "VACUUM (ANALYZE) balances"); err != nil {
		return l, err
	}
	if err := g.ask(ctx, s, layoutSizes, &l.HeapBefore, &l.IndexesWas); err != nil {
		return l, err
	}
	if err := g.start(ctx, s, 1); err != nil {
		return l, err
	}
	debits := g.cfg.Sizes.Debits
	if set.snapshot {
		debits /= snapshotPart
		release, err := snapshot(ctx, s.at[0].databaseURL)
		if err != nil {
			return l, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	if err := g.debitMany(ctx, s, debits, &l); err != nil {
		return l, err
	}
	if err := g.stand.end(ctx, s.at[0]); err != nil { // its sessions report their statistics when they end
		return l, err
	}
	return l, g.examine(ctx, s, &l)
}

// othersSQL counts the sessions that may still report statistics. These are all sessions except this session and the
// session with the snapshot.
const othersSQL = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
	AND state IS DISTINCT FROM 'idle in transaction'`

const layoutSizes = "SELECT pg_relation_size('balances'), pg_indexes_size('balances')"

// snapshot opens a transaction and its snapshot. Both stay open until release.
func snapshot(ctx context.Context, url string) (release func() error, err error) {
	db, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT 1"} {
		if _, err := db.Exec(ctx, sql); err != nil {
			return nil, errors.Join(err, db.Close(ctx))
		}
	}
	return func() error { return db.Close(context.WithoutCancel(ctx)) }, nil
}

// debitMany debits random tenants in batches.
func (g *grower) debitMany(ctx context.Context, s *grown, debits int, l *growth.Layout) error {
	size := min(layoutBatch, l.Balances)
	t := newTemplate("/v1/debits/batch", bearer(adminKey), batchBody(size), size)
	clients, err := dial(ctx, s.at[0].api, min(batchClients, g.cfg.Connections))
	if err != nil {
		return err
	}
	defer closeAll(clients)
	wal, err := g.wal(ctx)
	if err != nil {
		return err
	}
	requests, pid := int64(max(1, debits/size)), s.at[0].child.Pid()
	before, sent := cpuOf(os.Getpid(), pid), atomic.Int64{}
	r, err := closedLoop(ctx, len(clients), time.Hour, func(caller int) (outcome, error) {
		if sent.Add(1) > requests {
			return outcome{}, errEnough
		}
		status, err := clients[caller].send(t, g.seq.Add(1), s.tenants)
		return clients[caller].outcome(status, t), err
	})
	if err != nil {
		return err
	}
	if r.errors > 0 {
		return fmt.Errorf("%d of %d debits were refused: %v", r.errors, r.units+r.errors, r.answers)
	}
	l.Debits, l.PerSecond, l.Used = r.units, r.rate(), cpuOf(os.Getpid(), pid).Minus(before).Per(r.units)
	after, err := g.wal(ctx)
	l.WAL = after - wal
	return err
}

func (g *grower) wal(ctx context.Context) (at int64, err error) {
	if err := g.stand.db.QueryRow(ctx, "SELECT (pg_current_wal_lsn() - '0/0')::bigint").Scan(&at); err != nil {
		return 0, fmt.Errorf("WAL: %w", err)
	}
	return at, nil
}

// examine waits until all sessions of the service have ended, and then reads the sizes and the statistics of
// balances.
func (g *grower) examine(ctx context.Context, s *grown, l *growth.Layout) error {
	hot, sessions := int64(0), 1
	for deadline := time.Now().Add(statsTimeout); sessions > 0 && time.Now().Before(deadline); {
		if err := g.ask(ctx, s, othersSQL, &sessions); err != nil {
			return err
		}
		if err := wait(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	err := g.ask(ctx, s, "SELECT n_tup_upd, n_tup_hot_upd, autovacuum_count FROM pg_stat_user_tables WHERE relname = 'balances'", &l.Updates, &hot, &l.Vacuums)
	if err != nil {
		return err
	}
	if l.Updates == 0 {
		return errors.New("PostgreSQL counted no update of balances")
	}
	l.Hot = float64(hot) / float64(l.Updates)
	if err := g.ask(ctx, s, layoutSizes, &l.Heap, &l.Indexes); err != nil {
		return err
	}
	if err := g.execute(ctx, s.database, "CREATE EXTENSION IF NOT EXISTS pgstattuple"); err != nil {
		g.say("dead and free bytes stay unknown: pgstattuple is missing; it is in the system's package of PostgreSQL's contrib modules")
		return nil
	}
	return g.ask(ctx, s, "SELECT dead_tuple_percent / 100, free_percent / 100 FROM pgstattuple('balances')", &l.Dead, &l.Free)
}

// connect opens a connection for the benchmark.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return db, nil
}
