package verifier

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestStatements_PrepareAndAreUsed(t *testing.T) {
	t.Parallel()
	testenv.Statements(t, namedsql.Must(namedsql.Plain, sqlFiles))
}

// bundle is a verifier on a separate database, and a ledger that writes the data to verify. The test can move the
// database's clock.
type bundle struct {
	*Verifier
	t      testing.TB
	url    string
	db     *pgx.Conn // for changes that bypass the ledger
	ledger *pg.Ledger
	moved  *testenv.DatabaseClock

	rangeEntries int64 // auditor.RangeEntries of verifiers that are opened later; 0: the default
}

func newBundle(t testing.TB) *bundle {
	t.Helper()
	b := &bundle{t: t, url: testenv.Postgres(t)}
	b.moved = testenv.MoveClock(t, b.url)
	b.db = testenv.Connect(t, b.url)
	b.ledger = b.openLedger()
	b.Verifier = b.open(nil)
	return b
}

func (b *bundle) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b.t.Output(), nil)) }

func (b *bundle) openLedger() *pg.Ledger {
	b.t.Helper()
	l, err := pg.Open(b.t.Context(), pg.Config{
		DatabaseURL: testenv.AsService(b.url), Readers: 2, Log: b.logger(), Metrics: prometheus.NewRegistry(), AnswerBudget: testenv.Patience,
		Clock: pg.NewClock(365*24*time.Hour, b.logger()), // the test moves only the database's clock
	})
	b.must(err)
	b.must(l.Start(b.t.Context()))
	b.t.Cleanup(func() {
		assert.NoError(b.t, l.Stop(context.Background()), "stop ledger")
	})
	return l
}

// open opens one more verifier on the database, as another instance would.
func (b *bundle) open(change func(*Config)) *Verifier {
	b.t.Helper()
	cfg := Config{DatabaseURL: testenv.AsService(b.url), Target: namedsql.Target(testenv.OnCitus()), Log: b.logger(), Metrics: prometheus.NewRegistry()}
	if change != nil {
		change(&cfg)
	}
	v, err := Open(b.t.Context(), cfg)
	b.must(err)
	if b.rangeEntries > 0 {
		v.auditor.RangeEntries = b.rangeEntries
	}
	v.Start()
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		assert.NoError(b.t, v.Stop(ctx), "stop verifier")
	})
	return v
}

// Seal seals a day with the database role that owns the tables, because the service's role may not write seals.
func (b *bundle) Seal(ctx context.Context, o audit.SealOptions) (*seal.Seal, error) {
	return b.open(func(c *Config) { c.DatabaseURL = b.url }).Seal(ctx, o)
}

func (b *bundle) must(err error) {
	b.t.Helper()
	require.NoError(b.t, err)
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	_, err := b.db.Exec(b.t.Context(), sql, args...)
	b.must(err)
}

// advance moves the database's clock.
func (b *bundle) advance(by time.Duration) {
	b.t.Helper()
	b.moved.Advance(by)
}

// one returns the value of a query with one row and one column.
func one[V any](b *bundle, sql string, args ...any) (v V) {
	b.t.Helper()
	b.must(b.db.QueryRow(b.t.Context(), sql, args...).Scan(&v))
	return v
}

// now returns the current instant of the database.
func (b *bundle) now() time.Time {
	b.t.Helper()
	return one[time.Time](b, "SELECT moved.clock_timestamp()").UTC()
}

// plan creates a plan with one allowance of api_calls. columns sets further columns of plan_allowances: "name = value,
// ...".
func (b *bundle) plan(id string, amount int64, every, columns string) *bundle {
	b.t.Helper()
	b.exec("INSERT INTO meters (meter, unit) VALUES ('api_calls', 'unit'), ('credits', 'unit') ON CONFLICT DO NOTHING")
	b.exec("INSERT INTO plans (plan, version, created_at) VALUES ($1, 1, $2)", id, b.now().AddDate(-1, 0, 0))
	b.exec(`INSERT INTO plan_allowances (plan, version, meter, ordinal, amount, every, anchor) VALUES ($1, 1, 'api_calls', 0, $2, $3, 'tenant')`,
		id, amount, every)
	if columns != "" {
		b.exec("UPDATE plan_allowances SET "+columns+" WHERE plan = $1", id)
	}
	return b
}

// signUp creates a tenant whose periods began a minute ago.
func (b *bundle) signUp(id, plan string) {
	b.t.Helper()
	at := b.now().Add(-time.Minute)
	b.exec(`INSERT INTO tenants (tenant_id, plan, anchor, timezone, created_at) VALUES ($1, $2, $3, 'UTC', $3)`, id, plan, at)
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial) VALUES ($1, $2, $3, $2, 'UTC', true)`, id, at, plan)
}

// changeNow puts a tenant on another plan at once, as the catalogue does.
func (b *bundle) changeNow(tenant, plan string) {
	b.t.Helper()
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, immediate)
		SELECT tenant_id, $2, $3, anchor, timezone, true FROM tenants WHERE tenant_id = $1`, tenant, b.now(), plan)
	b.chainAnew(tenant)
}

// chainAnew lets the chain of a tenant's terms begin again: the test has written terms without the catalogue.
func (b *bundle) chainAnew(tenant string) {
	b.t.Helper()
	b.exec("DELETE FROM terms_chains WHERE tenant_id = $1", tenant)
}

// simple signs up tenant id for a monthly allowance.
func (b *bundle) simple(id string, amount int64) *bundle {
	b.t.Helper()
	b.plan("plan-"+id, amount, "month", "")
	b.signUp(id, "plan-"+id)
	return b
}

func debitOf(tenant, key string, amount int64) *ledger.Debit {
	return &ledger.Debit{Tenant: tenant, Key: key, Items: []ledger.Item{{Meter: "api_calls", Amount: amount}}}
}

func topupOf(tenant, key, meter string, amount int64) *ledger.Grant {
	return &ledger.Grant{Tenant: tenant, Key: key, Meter: meter, Amount: amount, Source: ledger.SourceTopup}
}

func holdOf(tenant, key, id string, amount int64) *ledger.Hold {
	return &ledger.Hold{Tenant: tenant, Key: key, HoldID: id, Items: []ledger.Item{{Meter: "api_calls", Amount: amount}}}
}

// mustDo runs an operation. The operation with key d1 has no actor; all others have actor key_1.
func mustDo[R any](b *bundle, op ledger.Request[R]) *R {
	b.t.Helper()
	ctx := b.t.Context()
	if op.ID().Key != "d1" {
		ctx = auditlog.With(ctx, &auditlog.Actor{KeyID: "key_1"})
	}
	r, err := pg.Do(ctx, b.ledger, op)
	b.must(err)
	return r
}

// verified verifies with the options.
func (b *bundle) verified(o Options) *audit.Report {
	b.t.Helper()
	report, err := b.Verify(b.t.Context(), o)
	b.must(err)
	return report
}

// report verifies all balances.
func (b *bundle) report() *audit.Report {
	b.t.Helper()
	return b.verified(Options{})
}

// mustVerify verifies all balances. It fails the test unless the tables agree with the journal.
func (b *bundle) mustVerify() *audit.Report {
	b.t.Helper()
	report := b.report()
	for _, d := range report.Differences {
		b.t.Errorf("verify: %s", d)
	}
	return report
}
