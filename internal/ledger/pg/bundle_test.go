package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// bundle is a ledger on a separate database, with methods that write the catalogue by SQL.
type bundle struct {
	*Ledger
	t   testing.TB
	url string
	db  *pgx.Conn // a separate connection for the statements of the test itself
}

func newBundle(t testing.TB, change ...func(*Config)) *bundle {
	t.Helper()
	return newBundleOn(t, testenv.Postgres(t), change...)
}

func newBundleOn(t testing.TB, url string, change ...func(*Config)) *bundle {
	t.Helper()
	b := &bundle{t: t, url: url, Ledger: openLedger(t, url, change...)}
	b.reconnect()
	return b
}

// reconnect gives the test a new connection.
func (b *bundle) reconnect() {
	b.t.Helper()
	b.db = testenv.Connect(b.t, b.url)
}

// on returns a bundle that uses another instance.
func (b *bundle) on(l *Ledger) *bundle { return &bundle{Ledger: l, t: b.t, url: b.url, db: b.db} }

// another returns a bundle with a connection of its own and no ledger: another client of the database.
func (b *bundle) another() *bundle {
	b.t.Helper()
	other := &bundle{t: b.t, url: b.url}
	other.reconnect()
	return other
}

// throughCoordinator makes the ledger send its batches to the server of the URL. Tests whose proxy loses the answers
// of this server need it, because on Citus batches would go to other nodes.
func throughCoordinator(c *Config) { c.ThroughCoordinator = true }

// openLedger opens one more ledger on url: another instance of the service. It waits for its answers as long as tests
// do, so that a busy machine refuses nothing. Tests of the ledger's own limit call answersInTime.
func openLedger(t testing.TB, url string, change ...func(*Config)) *Ledger {
	t.Helper()
	cfg := Config{
		DatabaseURL: testenv.AsService(url), Readers: 2, Log: logger(t), Metrics: prometheus.NewRegistry(), AnswerBudget: testenv.Patience,
	}
	for _, f := range change {
		f(&cfg)
	}
	l, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context()))
	testenv.StopAtEnd(t, l.Stop)
	return l
}

// answersInTime restores the time limits of the service.
func (b *bundle) answersInTime() *bundle {
	b.limits = promisedLimits
	return b
}

// logger writes to the log of a test.
func logger(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	require.NoError(b.t, errOf(b.db.Exec(b.t.Context(), sql, args...)))
}

func (b *bundle) meter(ids ...string) *bundle {
	b.t.Helper()
	for _, id := range ids {
		b.exec("INSERT INTO meters (meter, unit) VALUES ($1, 'unit') ON CONFLICT DO NOTHING", id)
	}
	return b
}

// plan adds a version of a plan. Each allowance is a text of the form "meter amount every anchor", for example
// "api_calls 10 month calendar".
func (b *bundle) plan(id string, version int, at time.Time, allowances ...string) {
	b.t.Helper()
	b.exec("INSERT INTO plans (plan, version, created_at) VALUES ($1, $2, $3)", id, version, at)
	for i, text := range allowances {
		var meter, every, anchor string
		var amount int64
		require.NoError(b.t, errOf(fmt.Sscan(text, &meter, &amount, &every, &anchor)), "allowance %q", text)
		b.meter(meter)
		b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			id, version, meter, i, amount, every, anchor)
	}
}

// tenant signs a tenant up at an instant.
func (b *bundle) tenant(id, plan string, at, anchor time.Time, zone string) {
	b.t.Helper()
	b.exec(`INSERT INTO tenants (tenant_id, plan, anchor, timezone, created_at) VALUES ($1, $2, $3, $4, $5)`, id, plan, anchor, zone, at)
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial) VALUES ($1, $2, $3, $4, $5, true)`,
		id, at, plan, anchor, zone)
}

// simple signs up a tenant whose terms begin an hour ago. Its plan has one monthly calendar allowance, of meter
// api_calls.
func (b *bundle) simple(id string, amount int64) *bundle {
	b.t.Helper()
	at := time.Now().Add(-time.Hour).UTC()
	plan := fmt.Sprintf("plan-%d", amount)
	b.exec("INSERT INTO plans (plan, version, created_at) VALUES ($1, 1, $2) ON CONFLICT DO NOTHING", plan, at)
	b.meter("api_calls", "credits")
	b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor)
		VALUES ($1, 1, 'api_calls', 0, $2, 'month', 'calendar') ON CONFLICT DO NOTHING`, plan, amount)
	b.tenant(id, plan, at, at, "UTC")
	return b
}

// several signs up n tenants t0, t1 and so on, in the same way as simple. It returns their ids.
func (b *bundle) several(n int, amount int64) (tenants []string) {
	b.t.Helper()
	for i := range n {
		tenants = append(tenants, fmt.Sprint("t", i))
		b.simple(tenants[i], amount)
	}
	return tenants
}

func debitOf(tenant, key string, amount int64) *ledger.Debit {
	return &ledger.Debit{Tenant: tenant, Key: key, Items: []ledger.Item{{Meter: "api_calls", Amount: amount}}}
}

// debitFor returns a debit by a subject.
func debitFor(subject, tenant, key string, amount int64) *ledger.Debit {
	d := debitOf(tenant, key, amount)
	d.Subject = subject
	return d
}

func topupOf(tenant, key, meter string, amount int64) *ledger.Grant {
	return &ledger.Grant{Tenant: tenant, Key: key, Meter: meter, Amount: amount, Source: ledger.SourceTopup}
}

// do runs an operation, which must succeed. The context has the actor of the operation.
func do[R any](ctx context.Context, b *bundle, op ledger.Request[R], options ...Option) *R {
	b.t.Helper()
	r, err := Do(ctx, b.Ledger, op, options...)
	require.NoError(b.t, err, op)
	return r
}

// mustDo runs an operation, which must succeed.
func mustDo[R any](b *bundle, op ledger.Request[R], options ...Option) *R {
	b.t.Helper()
	return do(b.t.Context(), b, op, options...)
}

// wantRefusal runs an operation, which must fail with the code. It returns the error.
func wantRefusal[R any](b *bundle, code errcode.Code, op ledger.Request[R], options ...Option) *errcode.Error {
	b.t.Helper()
	_, err := Do(b.t.Context(), b.Ledger, op, options...)
	return wantCode(b.t, err, code)
}

func (b *bundle) mustDebit(d *ledger.Debit) *ledger.DebitResult {
	b.t.Helper()
	return mustDo(b, d)
}

func (b *bundle) debit(tenant, key string, amount int64) {
	b.t.Helper()
	mustDo(b, debitOf(tenant, key, amount))
}

func (b *bundle) mustGrant(tenant, key, meter string, amount int64) {
	b.t.Helper()
	mustDo(b, topupOf(tenant, key, meter, amount))
}

// one returns the value of a query with one row and one column.
func one[V any](b *bundle, sql string, args ...any) (v V) {
	b.t.Helper()
	require.NoError(b.t, b.db.QueryRow(b.t.Context(), sql, args...).Scan(&v))
	return v
}

// list returns the rows of a query with one column.
func list[V any](b *bundle, sql string, args ...any) []V {
	b.t.Helper()
	rows, err := b.db.Query(b.t.Context(), sql, args...)
	require.NoError(b.t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[V])
	require.NoError(b.t, err)
	return out
}

// mustBalance reads a balance.
func (b *bundle) mustBalance(tenant, meter string) *ledger.Balance {
	b.t.Helper()
	return b.mustSubject(tenant, meter, "")
}

// mustSubject reads the balance of a subject.
func (b *bundle) mustSubject(tenant, meter, subject string) *ledger.Balance {
	b.t.Helper()
	out, err := b.Balance(b.t.Context(), tenant, meter, subject)
	require.NoError(b.t, err, "balance %s/%s/%s", tenant, meter, subject)
	return out
}

// roll runs a roll, which must succeed.
func (b *bundle) roll() Roll {
	b.t.Helper()
	r, err := b.RunRoll(b.t.Context(), nil, func(Roll) {})
	require.NoError(b.t, err, "roll")
	return r
}

// wantSums fails the test if the sums of a balance of the tenant differ from want.
func (b *bundle) wantSums(tenant, meter string, want ledger.Sums) {
	b.t.Helper()
	wantSums(b.t, b.mustBalance(tenant, meter), want)
}

func wantSums(t testing.TB, got *ledger.Balance, want ledger.Sums) {
	t.Helper()
	wantEqual(t, "sums of "+got.Meter, got.Sums, want)
	wantEqual(t, "remaining of "+got.Meter, got.Remaining, want.Remaining())
}

// wantEqual fails the test if got differs from want. The argument `what` names the compared value in the message.
func wantEqual[V any](t testing.TB, what string, got, want V) {
	t.Helper()
	assert.Equal(t, want, got, what)
}

// charge is the effect of a debit on an item.
type charge struct{ Charged, Shortfall, Remaining int64 }

func chargeOf(item ledger.ItemResult) charge {
	return charge{item.Charged, item.Shortfall, item.Remaining}
}

// holding is the state of a hold's first item after an operation.
type holding struct {
	Status                    ledger.HoldStatus
	Held, Captured, Remaining int64
}

func holdingOf(r *ledger.HoldResult) holding {
	return holding{r.Status, r.Items[0].Held, r.Items[0].Captured, r.Items[0].Remaining}
}

// refunded is the effect of a refund on an item.
type refunded struct{ Refunded, Forfeited, Remaining int64 }

func refundedOf(r *ledger.RefundResult) refunded {
	return refunded{r.Items[0].Refunded, r.Items[0].Forfeited, r.Items[0].Remaining}
}

// mustVerify verifies the database. It fails the test unless the tables agree with the journal.
func (b *bundle) mustVerify() *audit.Report {
	b.t.Helper()
	return b.mustVerifyOn(namedsql.Target(testenv.OnCitus()))
}

func (b *bundle) mustVerifyOn(target namedsql.Target) *audit.Report {
	b.t.Helper()
	v := openVerifier(b.t, b.url, target)
	report, err := v.Verify(b.t.Context(), verifier.Options{})
	require.NoError(b.t, err)
	for _, d := range report.Differences {
		b.t.Errorf("verify: %s", d)
	}
	return report
}

// openVerifier opens a verifier on url.
func openVerifier(t testing.TB, url string, target namedsql.Target) *verifier.Verifier {
	t.Helper()
	v, err := verifier.Open(t.Context(), verifier.Config{Target: target, DatabaseURL: url, Log: logger(t), Metrics: prometheus.NewRegistry()})
	require.NoError(t, err)
	testenv.StopAtEnd(t, v.Stop)
	return v
}

// errOf returns the error of a call, without its answer.
func errOf[V any](_ V, err error) error { return err }

func wantCode(t testing.TB, err error, code errcode.Code) *errcode.Error {
	t.Helper()
	got := errcode.Of(err)
	require.True(t, got == code, "got code %q (%v), want %q", got, err, code)
	e, _ := errors.AsType[*errcode.Error](err)
	return e
}

// Check runs a batch of one check.
func (b *bundle) Check(ctx context.Context, tenant, subject string, items []ledger.Item) (*ledger.CheckResult, error) {
	out := b.CheckBatch(ctx, []ledger.CheckRequest{{Tenant: tenant, Subject: subject, Items: items}})
	return out[0].Result, out[0].Err
}
