package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bundle is a reader and a ledger on a separate database, with methods that write the catalogue by SQL.
type bundle struct {
	*Reader
	t   testing.TB
	url string
	db  *pgx.Conn
}

func newBundle(t testing.TB) *bundle {
	t.Helper()
	b := &bundle{t: t, url: testenv.Postgres(t)}
	l, err := pg.Open(t.Context(), pg.Config{
		DatabaseURL: testenv.AsService(b.url), Readers: 2, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		AnswerBudget: testenv.Patience,
	})
	b.check(err)
	b.check(l.Start(t.Context()))
	testenv.StopAtEnd(t, l.Stop)
	b.Reader = b.reader(l, Config{})
	b.db = testenv.Connect(t, b.url)
	return b
}

// reader opens a reader of l.
func (b *bundle) reader(l *pg.Ledger, cfg Config) *Reader {
	b.t.Helper()
	cfg.DatabaseURL, cfg.Metrics = testenv.AsService(b.url), prometheus.NewRegistry()
	r, err := Open(b.t.Context(), l, cfg)
	b.check(err)
	b.t.Cleanup(func() { b.check(r.Stop(context.Background())) })
	return r
}

// report returns a report that runs without waiting in the queue of reports.
func (b *bundle) report() *report { return &report{Reader: b.Reader, pool: b.primary} }

func (b *bundle) check(err error) {
	b.t.Helper()
	require.NoError(b.t, err)
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	b.check(errOf(b.db.Exec(b.t.Context(), sql, args...)))
}

// one returns the value of a query with one row and one column.
func one[V any](b *bundle, sql string, args ...any) (v V) {
	b.t.Helper()
	b.check(b.db.QueryRow(b.t.Context(), sql, args...).Scan(&v))
	return v
}

// list returns the rows of a query. read converts a row, as pgx.RowTo does for one column.
func list[V any](b *bundle, read pgx.RowToFunc[V], sql string, args ...any) []V {
	b.t.Helper()
	rows, err := b.db.Query(b.t.Context(), sql, args...)
	b.check(err)
	out, err := pgx.CollectRows(rows, read)
	b.check(err)
	return out
}

// allowance adds an allowance to version 1 of a plan.
func (b *bundle) allowance(plan, meter string, amount int64, every, anchor string) *bundle {
	b.t.Helper()
	b.exec("INSERT INTO meters (meter, unit) VALUES ($1, 'unit') ON CONFLICT DO NOTHING", meter)
	b.exec("INSERT INTO plans (plan, version, created_at) VALUES ($1, 1, now() - interval '2 years') ON CONFLICT DO NOTHING", plan)
	b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor) VALUES ($1, 1, $2, 0, $3, $4, $5)
		ON CONFLICT DO NOTHING`, plan, meter, amount, every, anchor)
	return b
}

// tenant signs a tenant up at an instant.
func (b *bundle) tenant(id, plan string, at, anchor time.Time) {
	b.t.Helper()
	b.exec(`INSERT INTO tenants (tenant_id, plan, anchor, timezone, created_at) VALUES ($1, $2, $3, 'UTC', $4)`, id, plan, anchor, at)
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial) VALUES ($1, $2, $3, $4, 'UTC', true)`,
		id, at, plan, anchor)
}

// hourly signs a tenant up for an hourly allowance. The tenant's open period began a minute ago.
func (b *bundle) hourly(id string, amount int64) *bundle {
	b.t.Helper()
	at := time.Now().UTC().Add(-time.Minute)
	b.allowance("hourly", "api_calls", amount, "hour", "tenant")
	b.tenant(id, "hourly", at, at)
	return b
}

// monthly signs a tenant up for an allowance per calendar month.
func (b *bundle) monthly(id string, amount int64) *bundle {
	b.t.Helper()
	at := time.Now().UTC().Add(-time.Hour)
	plan := fmt.Sprintf("monthly-%d", amount)
	b.allowance(plan, "api_calls", amount, "month", "calendar")
	b.tenant(id, plan, at, at)
	return b
}

// rewind moves all rows into the past, as if the given time had passed. It adds seven seconds, because the id of an
// allowance contains the start of its period. After a move by whole periods, a new allowance would get an old id.
func (b *bundle) rewind(by time.Duration) {
	b.t.Helper()
	by += 7 * time.Second
	b.exec("UPDATE rollups SET created_at = created_at - $1::interval", by)
	moves := append(testenv.Rewind(testenv.OfTenant), testenv.RewindHolds(testenv.OfTenant)...)
	for _, sql := range slices.Concat(moves, testenv.Rewound, []string{testenv.RewoundHolds}) {
		b.exec(sql, "", by)
	}
}

// rollups opens a writer of rollups with the given number of entries per row.
func (b *bundle) rollups(every int64) *Rollups {
	b.t.Helper()
	w, err := OpenRollups(b.t.Context(), RollupConfig{Target: namedsql.Target(testenv.OnCitus()), DatabaseURL: testenv.AsService(b.url), Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	b.check(err)
	w.every, w.least, w.rest = every, every/5, 0
	b.t.Cleanup(func() { b.check(w.Stop(context.Background())) })
	return w
}

// roll processes all balances that are due.
func (b *bundle) roll() {
	b.t.Helper()
	b.check(errOf(b.ledger.RunRoll(b.t.Context(), nil, func(pg.Roll) {})))
}

func debitOf(tenant, key string, amount int64) *ledger.Debit {
	return &ledger.Debit{Tenant: tenant, Key: key, Items: []ledger.Item{{Meter: "api_calls", Amount: amount}}}
}

func topupOf(tenant, key, meter string, amount int64) *ledger.Grant {
	return &ledger.Grant{Tenant: tenant, Key: key, Meter: meter, Amount: amount, Source: ledger.SourceTopup}
}

// must runs an operation, which must succeed.
func must[R any](b *bundle, op ledger.Request[R]) *R {
	b.t.Helper()
	out, err := pg.Do(b.t.Context(), b.ledger, op)
	b.check(err)
	return out
}

// mustBalance reads a balance.
func (b *bundle) mustBalance(tenant, meter string) *ledger.Balance {
	b.t.Helper()
	out, err := b.ledger.Balance(b.t.Context(), tenant, meter, "")
	b.check(err)
	return out
}

// mustVerify verifies the database. It fails the test unless the tables agree with the journal.
func (b *bundle) mustVerify() {
	b.t.Helper()
	v, err := verifier.Open(b.t.Context(), verifier.Config{Target: namedsql.Target(testenv.OnCitus()), DatabaseURL: testenv.AsService(b.url), Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	b.check(err)
	defer func() { b.check(v.Stop(context.Background())) }()
	report, err := v.Verify(b.t.Context(), verifier.Options{})
	b.check(err)
	for _, d := range report.Differences {
		b.t.Errorf("verify: %s", d)
	}
}

func wantSums(t testing.TB, got *ledger.Balance, want ledger.Sums) {
	t.Helper()
	wantEqual(t, "sums of "+got.Meter, got.Sums, want)
	wantEqual(t, "remaining of "+got.Meter, got.Remaining, want.Remaining())
}

// wantEqual fails the test when got differs from want. what names the compared value in the message.
func wantEqual[V any](t testing.TB, what string, got, want V) {
	t.Helper()
	assert.Equal(t, want, got, what)
}

func wantCode(t testing.TB, err error, code errcode.Code) *errcode.Error {
	t.Helper()
	got := errcode.Of(err)
	require.True(t, got == code, "got code %q (%v), want %q", got, err, code)
	e, _ := errors.AsType[*errcode.Error](err)
	return e
}

// errOf returns the error of a call, without its answer.
func errOf[V any](_ V, err error) error { return err }

// wantRefused fails the test unless err has the code InvalidArgument and names the field.
func wantRefused(t testing.TB, err error, field string) {
	t.Helper()
	e := wantCode(t, err, errcode.InvalidArgument)
	assert.Equal(t, field, e.Field(), "field %q (%v)", e.Field(), err)
}
