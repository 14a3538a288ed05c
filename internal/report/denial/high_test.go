package denial

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// told returns the stored events, each as text.
func (b *bench) told() []string {
	b.t.Helper()
	rows, err := b.pool.Query(b.t.Context(), `SELECT concat_ws(' ', type, tenant_id, data->>'rule', data->>'minute', data->>'rejections', data->>'threshold') FROM events`)
	require.NoError(b.t, err)
	lines := testenv.Must(b.t).Get(pgx.CollectRows(rows, pgx.RowTo[string]))
	slices.Sort(lines)
	return lines
}

func (b *bench) wantTold(want ...string) {
	b.t.Helper()
	slices.Sort(want)
	assert.Equal(b.t, append([]string{}, want...), b.told(), "events")
}

// stopped is a clock that does not move.
type stopped struct{ time.Time }

func (s stopped) Now() time.Time { return s.Time }

// watching returns another recorder, which emits an event if a limit refuses `threshold` requests in a minute.
func (b *bench) watching(threshold int64) *Recorder {
	b.t.Helper()
	r := b.open()
	r.cfg.RejectionsHigh = threshold
	return r
}

func (r *Recorder) refuse(n int, tenant, rule, meter string, at time.Time) {
	for i := range n {
		r.Note(&Denial{At: at, Tenant: tenant, Code: "rate_limited", Meter: meter, Rule: rule, RequestID: fmt.Sprint("r", i)})
	}
}

func TestRecorder_LimitRefusesMany_ToldOnceAnHour(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme", "globex")
	r := b.watching(100)
	hour := time.Now().UTC().Truncate(time.Hour)
	minute := func(n int) time.Time { return hour.Add(time.Duration(n) * time.Minute) }
	text := func(tenant, rule string, m, n int) string {
		return fmt.Sprintf("limit.rejections_high %s %s %s %d 100", tenant, rule, minute(m).Format(time.RFC3339), n)
	}
	r.refuse(99, "acme", "per-tenant", "calls", minute(1))
	r.refuse(99, "acme", "other-rule", "calls", minute(1))
	r.refuse(500, "acme", "", "calls", minute(1)) // refusals that no limit caused
	b.flush(r)
	r.refuse(99, "acme", "per-tenant", "calls", minute(2))
	b.flush(r)
	b.wantTold()
	r.refuse(1, "acme", "per-tenant", "tokens", minute(1)) // the hundredth refusal of that minute, for another meter
	b.flush(r)
	want := []string{text("acme", "per-tenant", 1, 100)}
	b.wantTold(want...)
	for m := range 60 { // many refusals in an hour cause one event
		r.refuse(100, "acme", "per-tenant", "calls", minute(m))
		b.flush(r)
	}
	b.wantTold(want...)
	r.refuse(100, "globex", "per-tenant", "calls", minute(3))
	r.refuse(101, "acme", "other-rule", "calls", minute(4))
	r.refuse(200, "acme", "per-tenant", "calls", minute(60)) // the next hour
	b.flush(r)
	b.wantTold(append(want, text("globex", "per-tenant", 3, 100), text("acme", "other-rule", 4, 101), text("acme", "per-tenant", 60, 200))...)
}

// Refusals on several instances are added to the same count. Exactly one event is emitted, even if only the sum of
// the instances reaches the threshold.
func TestRecorder_LimitRefusesMany_OnSeveralInstances_ToldOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	minute := time.Now().UTC().Truncate(time.Minute)
	for round := range 5 {
		rule := fmt.Sprint("rule-", round)
		var all sync.WaitGroup
		for i := range 4 {
			r := b.watching(100)
			r.refuse(30, "acme", rule, fmt.Sprint("meter-", i), minute)
			all.Go(func() { b.flush(r) })
		}
		all.Wait()
		const events = "SELECT count(*) FROM events WHERE data->>'rule' = $1 AND (data->>'rejections')::bigint >= 100"
		assert.EqualValues(t, 1, b.number(events, rule), "events of %s: %q", rule, b.told())
	}
}

// 400,000 refusals with hostile names cause one event for the limit that exists, and none for refusals under Other.
func TestRecorder_Flood_OneEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	r := b.watching(100)
	minute := time.Now().UTC().Truncate(time.Minute)
	for flush := range 10 {
		for i := range 20_000 {
			r.Note(&Denial{At: minute, Tenant: "acme", Code: "rate_limited", Meter: fmt.Sprint("m", flush, i), Rule: "per-tenant"})
			r.Note(&Denial{At: minute, Tenant: fmt.Sprint("nobody-", i%50), Code: "rate_limited", Rule: "per-tenant"})
		}
		r.refuse(200, "acme", "per-tenant", "calls", minute)
		b.flush(r)
	}
	assert.Len(t, b.told(), 1, "events")
	assert.EqualValues(t, 1, b.number("SELECT count(*) FROM event_marks"), "marks")
}

// If an event cannot be written, the denials are still counted.
func TestRecorder_EventsCannotBeWritten_DenialsAreCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	r := b.watching(10)
	minute := time.Now().UTC().Truncate(time.Minute)
	r.cfg.Clock = stopped{minute}
	month := minute.Format("2006_01")
	b.exec("ALTER TABLE events DETACH PARTITION events_" + month)
	r.refuse(20, "acme", "per-tenant", "calls", minute)
	b.flush(r)
	assert.EqualValues(t, 20, b.number("SELECT sum(n) FROM denial_counts"), "denials are counted")
	assert.Zero(t, testutil.ToFloat64(r.metrics.counts), "are lost")
	assert.Zero(t, b.number("SELECT count(*) FROM event_marks"), "marks of what was not told")
	first := minute.AddDate(0, 0, 1-minute.Day())
	b.exec(fmt.Sprintf("ALTER TABLE events ATTACH PARTITION events_%s FOR VALUES FROM ('%s') TO ('%s')", month,
		first.Format(time.DateOnly), first.AddDate(0, 1, 0).Format(time.DateOnly)))
	r.refuse(1, "acme", "per-tenant", "calls", minute)
	b.flush(r)
	assert.Len(t, b.told(), 1, "the next refusal emits it")
}

func TestRecorder_ThresholdZero_NothingTold(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	r, err := Open(t.Context(), Config{DatabaseURL: testenv.AsService(b.url), Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Clock: systemClock{}})
	require.NoError(t, err)
	r.refuse(5000, "acme", "per-tenant", "calls", time.Now())
	require.NoError(t, r.Stop(t.Context()))
	b.wantTold()
	w := &write{tenant: []string{"a", "a", "a", "b", "c"}, minute: make([]time.Time, 5), rule: []string{"", "r", "s", Other, "r"}, n: []int64{900, 1, 1, 900, 1}}
	tenants, _ := w.limited()
	assert.Equal(t, []string{"a", "c"}, tenants)
}
