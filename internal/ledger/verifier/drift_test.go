package verifier

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// told returns the verify.drift events that were emitted so far, as text: the balance, the verification, and whether
// the event describes differences.
func (b *bundle) told() []string {
	b.t.Helper()
	rows, _ := b.db.Query(b.t.Context(), `SELECT concat_ws(' ', type, nullif(tenant_id, ''), meter, nullif(subject, ''), data->>'verification_id', (data->>'differences')::int > 0,
		data->>'what' <> '' AND data->>'journal' <> '' AND data->>'stored' <> '') FROM events WHERE type = 'verify.drift'`)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	b.must(err)
	slices.Sort(lines)
	return lines
}

func (b *bundle) wantTold(want ...string) {
	b.t.Helper()
	slices.Sort(want)
	assert.Equal(b.t, append([]string{}, want...), b.told(), "events")
}

func drift(tenant, id string) string {
	return strings.Join(strings.Fields(fmt.Sprintf("verify.drift %s api_calls  %s t t", tenant, id)), " ")
}

// tamper changes the balances of the tenants, so that several fields of each balance are wrong.
func (b *bundle) tamper(tenants ...string) {
	b.t.Helper()
	b.exec("UPDATE balances SET granted = granted + 7, opening = opening + 1 WHERE tenant_id = ANY ($1)", tenants)
}

func TestVerification_Difference_ToldOncePerBalance(t *testing.T) {
	t.Parallel()
	b := newBundle(t).plan("p", 100, "month", "")
	for _, tenant := range []string{"acme", "globex", "fine"} {
		b.signUp(tenant, "p")
		mustDo(b, debitOf(tenant, "k", 10))
	}
	v := b.background(t, "")
	require.True(t, v.Status == VerificationClean, v)
	b.wantTold()
	b.tamper("acme", "globex")
	all := b.background(t, "")
	require.True(t, all.Status == VerificationDrift && all.Report.Count >= 4, all)
	b.wantTold(drift("acme", all.ID), drift("globex", all.ID), drift("", all.ID)) // "": sums over all tenants
	one := b.background(t, "acme")                                                // emits its own event
	require.True(t, one.Status == VerificationDrift, one)
	b.wantTold(drift("acme", all.ID), drift("globex", all.ID), drift("", all.ID), drift("acme", one.ID))
}

// The result of a verification and its events are stored in one transaction. If one write fails, nothing is stored.
func TestVerification_EventCannotBeWritten_NotRecorded(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100)
	mustDo(b, debitOf("acme", "k", 10))
	b.tamper("acme")
	report := b.verified(Options{Tenant: "acme"})
	v := Verification{ID: "v1", Tenant: "acme", Status: VerificationRunning}
	b.exec("INSERT INTO verifications (verification_id, tenant_id, status, started_at, heartbeat_at) VALUES ('v1', 'acme', 'running', now(), now())")
	b.exec("REVOKE INSERT ON events FROM quotasvc_service")
	v.Status, v.Report = VerificationDrift, *report
	assert.Error(t, b.saveVerification(t.Context(), &v), "no error")
	got, err := b.VerificationStatus(t.Context(), "v1")
	assert.True(t, err == nil && got.Status != VerificationDrift, "%+v, %v", got, err)
	b.exec("GRANT INSERT ON events TO quotasvc_service")
	b.must(b.saveVerification(t.Context(), &v))
	b.wantTold(drift("acme", "v1")) // a verification of one tenant checks no sums over all tenants
}

func TestWatch_Difference_IsReported(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	mustDo(b, debitOf("acme", "k1", 3))
	b.exec("UPDATE balances SET used = used + 1, head_remaining = head_remaining - 1")
	differences := b.open(func(c *Config) { c.Every = time.Millisecond }).metrics.differences
	testenv.Eventually(t, func() bool { return testutil.ToFloat64(differences) > 0 })
	b.exec("UPDATE balances SET used = used - 1, head_remaining = head_remaining + 1")
	testenv.Eventually(t, func() bool { return testutil.ToFloat64(differences) == 0 })
}

// The watch finds the same difference in every pass and on every instance. Together the instances emit one event a
// day for this difference.
func TestWatch_Difference_ToldOnceADay_BySeveralInstances(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	if now := b.now(); now.Hour() == 23 { // the test must end on the day on which it began
		b.advance(time.Hour)
	}
	b.simple("acme", 100)
	b.simple("globex", 100)
	mustDo(b, debitOf("acme", "k", 10))
	mustDo(b, debitOf("globex", "k", 10))
	b.exec("UPDATE balances SET head_remaining = head_remaining - 1 WHERE tenant_id = 'acme'")
	pass := func() {
		t.Helper()
		var all sync.WaitGroup
		for range 3 {
			v := b.open(nil)
			all.Go(func() {
				for range 2 {
					assert.NoError(t, v.watch.pass(t.Context()))
				}
			})
		}
		all.Wait()
	}
	pass()
	b.wantTold(drift("acme", ""))
	b.exec("UPDATE balances SET head_remaining = head_remaining - 1 WHERE tenant_id = 'globex'")
	pass()
	b.wantTold(drift("acme", ""), drift("globex", ""))
	b.exec("UPDATE event_marks SET period_start = period_start - interval '1 day', ends_at = ends_at - interval '1 day'") // tomorrow
	pass()
	b.wantTold(drift("acme", ""), drift("acme", ""), drift("globex", ""), drift("globex", ""))
}

func TestDrifts_ManyDifferences_BoundedAndShort(t *testing.T) {
	t.Parallel()
	r := &audit.Report{Count: 12_345}
	for i := range audit.DifferencesMax {
		r.Differences = append(r.Differences, audit.Difference{Tenant: fmt.Sprint("t", i/2), Meter: "m", What: strings.Repeat("ä", driftTextMax), Want: "1", Got: strings.Repeat("x", 1<<20)})
	}
	told := drifts(r, "", "v", time.Now())
	assert.True(t, len(told) == audit.DifferencesMax/2, "%d events", len(told))
	for _, e := range told {
		text := fmt.Sprintf("%+v", e.Data)
		assert.True(t, len(text) <= 3*driftTextMax && utf8.ValidString(text) &&
			strings.Contains(text, "Differences:2 Total:12345"), "%d bytes: %.80s", len(text), text)
	}
}
