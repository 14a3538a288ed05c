package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/clock"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestStatements_PrepareAndAreUsed(t *testing.T) {
	t.Parallel()
	testenv.Statements(t, namedsql.Must(namedsql.Plain, sqlFiles))
}

// bundle is a ledger on a separate database. The test can move the clock of this database.
type bundle struct {
	*pg.Ledger
	t       *testing.T
	url     string
	db      *pgx.Conn
	history *history.Reader
	keys    int
	moved   *testenv.DatabaseClock
	at      time.Time // last instant to which the clock was set
	close   func()    // the first call closes everything; the end of the test also calls it
}

// newBundle returns a ledger whose clock is set to the first instant of a month.
func newBundle(t *testing.T, begin journal.Month) *bundle {
	t.Helper()
	b := &bundle{t: t, url: testenv.Postgres(t)}
	var ends []func()
	b.close = sync.OnceFunc(func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	})
	t.Cleanup(b.close)
	b.moved = testenv.MoveClock(t, b.url)
	var err error
	b.db, err = pgx.Connect(t.Context(), b.url)
	b.check(err)
	ends = append(ends, func() { _ = b.db.Close(context.Background()) })
	b.clock(begin.Start())
	j := journal.New(b.logger())
	b.check(j.MakeAhead(t.Context(), b.db, begin)) // the service's role has no right to do this
	b.Ledger, err = pg.Open(t.Context(), pg.Config{
		DatabaseURL: testenv.AsService(b.url), Readers: 2, Clock: clock.New(clock.Config{SkewMax: 100 * 365 * 24 * time.Hour}),
		Log: b.logger(), Metrics: prometheus.NewRegistry(), AnswerBudget: testenv.Patience,
	})
	b.check(err)
	b.check(b.Start(t.Context()))
	ends = append(ends, func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		assert.NoError(t, b.Stop(ctx), "stop ledger")
	})
	b.history, err = history.Open(t.Context(), b.Ledger, history.Config{DatabaseURL: testenv.AsService(b.url), Metrics: prometheus.NewRegistry()})
	b.check(err)
	ends = append(ends, func() { b.check(b.history.Stop(context.Background())) })
	return b
}

func (b *bundle) logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (b *bundle) check(err error) {
	b.t.Helper()
	require.NoError(b.t, err)
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	b.check(errOf(b.db.Exec(b.t.Context(), sql, args...)))
}

func (b *bundle) count(sql string, args ...any) int64 {
	b.t.Helper()
	return one[int64](b, sql, args...)
}

// one returns the value of a query with one row and one column.
func one[V any](b *bundle, sql string, args ...any) (v V) {
	b.t.Helper()
	b.check(b.db.QueryRow(b.t.Context(), sql, args...).Scan(&v))
	return v
}

// errOf returns the error of a call, without its answer.
func errOf[V any](_ V, err error) error { return err }

// clock sets PostgreSQL's clock to an instant. The clock runs on from there. Then clock makes the ledger read
// PostgreSQL's clock.
func (b *bundle) clock(at time.Time) {
	b.t.Helper()
	b.at = at
	b.moved.Set(at)
	if b.Ledger != nil {
		b.check(b.Ping(b.t.Context()))
	}
}

// catalogue creates the plan basic (100 units of meter calls a month, with rollover), and the meter credits, which
// has no allowance.
func (b *bundle) catalogue() *bundle {
	b.t.Helper()
	b.exec(`INSERT INTO meters (meter, unit) VALUES ('calls', 'call'), ('credits', 'credit');
		INSERT INTO plans (plan, version, created_at) VALUES ('basic', 1, clock_timestamp() - interval '1 day')`)
	b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor, rollover_min, rollover_max)
		VALUES ('basic', 1, 'calls', 0, 100, 'month', 'calendar', 0, 30)`)
	return b
}

func (b *bundle) tenant(id string) {
	b.t.Helper()
	b.exec(`INSERT INTO tenants (tenant_id, plan, anchor, timezone, created_at) VALUES ($1, 'basic', clock_timestamp(), 'UTC', clock_timestamp())`, id)
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial)
		SELECT tenant_id, created_at, plan, anchor, timezone, true FROM tenants WHERE tenant_id = $1`, id)
}

// key returns a new idempotency key.
func (b *bundle) key() string {
	b.keys++
	return fmt.Sprintf("op-%05d", b.keys)
}

// asOf returns the context for the operation with the given key. About every third operation has no actor in its
// context.
func asOf(ctx context.Context, key string) context.Context {
	if key == "" || (key[len(key)-1]-'0')%3 == 0 {
		return ctx
	}
	return auditlog.With(ctx, &auditlog.Actor{KeyID: "key_" + key[len(key)-1:], Admin: key[len(key)-1] == '1'})
}

func do[R any](b *bundle, op ledger.Request[R]) *R {
	b.t.Helper()
	out, err := pg.Do(asOf(b.t.Context(), op.ID().Key), b.Ledger, op)
	b.check(err)
	return out
}

func (b *bundle) debit(tenant, meter string, amount int64) string {
	b.t.Helper()
	key := b.key()
	do(b, &ledger.Debit{Tenant: tenant, Key: key, Items: []ledger.Item{{Meter: meter, Amount: amount}}})
	return key
}

func (b *bundle) topup(tenant string, amount int64) {
	b.t.Helper()
	do(b, &ledger.Grant{Tenant: tenant, Key: b.key(), Meter: "credits", Amount: amount, Source: ledger.SourceTopup})
}

// withVerifier calls the function `do` with a verifier of the database.
func (b *bundle) withVerifier(ctx context.Context, do func(*verifier.Verifier) error) error {
	v, err := verifier.Open(ctx, verifier.Config{
		Target: namedsql.Target(testenv.OnCitus()), DatabaseURL: testenv.AsService(b.url), Log: b.logger(), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	defer func() { _ = v.Stop(context.WithoutCancel(ctx)) }()
	return do(v)
}

// verify fails if the journal and the other tables differ.
func (b *bundle) verify(ctx context.Context) error {
	return b.withVerifier(ctx, func(v *verifier.Verifier) error {
		report, err := v.Verify(ctx, verifier.Options{Full: true})
		if err != nil {
			return err
		}
		for _, d := range report.Differences {
			err = errors.Join(err, errors.New(d.String()))
		}
		return err
	})
}

func (b *bundle) checkpoint(ctx context.Context, border time.Time) error {
	return b.withVerifier(ctx, func(v *verifier.Verifier) error {
		report, err := v.Pin(ctx, border, nil)
		if err == nil && !report.Clean() {
			err = errors.New(report.Differences[0].String())
		}
		return err
	})
}

// options returns the options of a run that archives the months before the given month to dir.
func (b *bundle) options(before journal.Month, dir string) Options {
	return Options{
		DatabaseURL: b.url, Before: before, Dir: dir, Verify: b.verify, Checkpoint: b.checkpoint, Rollup: b.rollup,
		Log: slog.New(slog.DiscardHandler),
	}
}

// run calls Run. It fails the test if Run fails.
func (b *bundle) run(o Options) *Result {
	b.t.Helper()
	out, err := Run(b.t.Context(), o)
	b.check(err)
	return out
}

// checkedArchive checks the archive in dir. It fails the test if the archive cannot be checked.
func (b *bundle) checkedArchive(dir string) *Report {
	b.t.Helper()
	report, err := b.checkArchive(dir)
	b.check(err)
	return report
}

func (b *bundle) checkArchive(dir string) (*Report, error) {
	return Check(b.t.Context(), CheckOptions{DatabaseURL: b.url, Dir: dir, Log: b.logger()})
}

// rollup writes rollups of a balance's entries up to the entry seq.
func (b *bundle) rollup(ctx context.Context, k ledger.BalanceKey, seq int64) error {
	w, err := history.OpenRollups(ctx, history.RollupConfig{Target: namedsql.Target(testenv.OnCitus()), DatabaseURL: testenv.AsService(b.url), Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	if err != nil {
		return err
	}
	return errors.Join(w.RollupTo(ctx, k, seq), w.Stop(ctx))
}
