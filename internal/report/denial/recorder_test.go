package denial

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// bench is a recorder on a database with some tenants. The recorder is not started, so the test calls Flush.
type bench struct {
	*Recorder
	t      *testing.T
	pool   *pgxpool.Pool // connections of the superuser
	reader *history.Reader
	url    string
}

func newBench(t *testing.T, tenants ...string) *bench {
	t.Helper()
	url := testenv.Postgres(t)
	b := &bench{t: t, url: url, pool: testenv.Pool(t, url)}
	for _, tenant := range tenants {
		b.exec("INSERT INTO tenants (tenant_id, plan, anchor) VALUES ($1, 'p', now())", tenant)
	}
	b.Recorder = b.open()
	log := slog.New(slog.DiscardHandler)
	l, err := pg.Open(t.Context(), pg.Config{
		DatabaseURL: testenv.AsService(url), Log: log, Metrics: prometheus.NewRegistry(), Clock: pg.NewClock(0, log),
		AnswerBudget: testenv.Patience,
	})
	require.NoError(t, err)
	require.NoError(t, l.Start(t.Context()))
	t.Cleanup(func() { _ = l.Stop(context.Background()) })
	b.reader, err = history.Open(t.Context(), l, history.Config{DatabaseURL: testenv.AsService(url), Metrics: prometheus.NewRegistry()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.reader.Stop(context.Background()) })
	return b
}

// open returns another recorder on the same database, like the recorder of another instance.
func (b *bench) open() *Recorder {
	b.t.Helper()
	r, err := Open(b.t.Context(), Config{DatabaseURL: testenv.AsService(b.url), Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Clock: systemClock{}})
	require.NoError(b.t, err)
	testenv.StopAtEnd(b.t, r.Stop)
	return r
}

func (b *bench) exec(sql string, args ...any) *bench {
	b.t.Helper()
	testenv.Exec(b.t, b.pool, sql, args...)
	return b
}

func (b *bench) number(sql string, args ...any) (n int64) {
	b.t.Helper()
	require.NoError(b.t, b.pool.QueryRow(b.t.Context(), sql, args...).Scan(&n))
	return n
}

// flush writes what r has in memory. A flush may fail on a slow machine; then the next one writes the rest.
func (b *bench) flush(r *Recorder) {
	b.t.Helper()
	testenv.Eventually(b.t, func() bool { return r.Flush(b.t.Context()) == nil }, "the denials are written")
}

func (b *bench) read(q Query) List {
	b.t.Helper()
	if q.Limit == 0 {
		q.Limit = 500
	}
	return testenv.Must(b.t).Get(Read(b.t.Context(), b.reader, time.Now(), q))
}

func refusal(tenant string, at time.Time, i int) *Denial {
	return &Denial{At: at, Tenant: tenant, Code: "quota_exceeded", Meter: "calls", Required: 5, Available: 2, RequestID: fmt.Sprint("r", i)}
}

// Two instances have refused 300 requests each. The last 100 explanations are kept, and all requests are counted.
func TestRecorder_TwoInstances_CountsAddUp_Last100Kept(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	other := b.open()
	minute := time.Now().UTC().Truncate(time.Minute)
	for i := range 300 {
		at := minute.Add(time.Duration(i) * 200 * time.Millisecond)
		b.Note(refusal("acme", at, 2*i))
		other.Note(refusal("acme", at.Add(time.Millisecond), 2*i+1))
		if i%40 == 39 {
			b.flush(b.Recorder)
			b.flush(other)
		}
	}
	b.flush(b.Recorder)
	b.flush(other)
	list := b.read(Query{Tenant: "acme", To: minute.Add(time.Hour)})
	assert.True(t, len(list.Counts) == 1 && list.Counts[0] == (Count{minute, "quota_exceeded", "calls", "", 600}),
		list.Counts)
	require.Len(t, list.Denials, Kept, "are kept")
	// The list is sorted by time. A flush of one instance stores some explanations that are older than the
	// explanations of the other instance.
	assert.True(t, slices.IsSortedFunc(list.Denials, func(a, b Denial) int { return b.At.Compare(a.At) }),
		"not newest first")
	d := list.Denials[0]
	assert.True(t, d.RequestID == "r599" && d.Required == 5 && d.Available == 2 && d.Meter == "calls" && d.Tenant == "acme", d)
	assert.EqualValues(t, Kept, b.number("SELECT jsonb_array_length(items) FROM denials_recent"), "are stored")
}

func TestRecorder_OneInstance_ExactlyTheLast100(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	start := time.Now().UTC().Truncate(time.Minute)
	for i := range 250 {
		b.Note(refusal("acme", start.Add(time.Duration(i)*time.Second), i))
		if rand.IntN(30) == 0 {
			b.flush(b.Recorder)
		}
	}
	b.flush(b.Recorder)
	list := b.read(Query{Tenant: "acme", To: start.Add(time.Hour)})
	for i, d := range list.Denials {
		want := fmt.Sprint("r", 249-i)
		require.True(t, d.RequestID == want, "place %d has %s, want %s", i, d.RequestID, want)
	}
	assert.True(t, len(list.Denials) == Kept && len(list.Counts) == 5,
		"%d kept, %d minutes", len(list.Denials), len(list.Counts))
	if few := b.read(Query{Tenant: "acme", From: start.Add(200 * time.Second), To: start.Add(210 * time.Second), Limit: 3}); len(few.Denials) != 3 || few.Denials[0].RequestID != "r209" ||
		len(few.Counts) != 1 || few.Counts[0].N != 60 {
		t.Errorf("%+v", few)
	}
}

// A client can send any names of meters and tenants.
func TestRecorder_HostileNames_RowsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme", "quiet")
	now := time.Now().UTC().Truncate(time.Minute)
	long := strings.Repeat("x", 128)
	for i := range 5000 {
		b.Note(&Denial{At: now, Tenant: "acme", Code: "meter_not_in_plan", Meter: fmt.Sprint("m", i), Subject: long, Route: long + long, RequestID: long})
		b.Note(&Denial{At: now, Tenant: fmt.Sprint("t", i), Code: "forbidden"})
	}
	b.Note(refusal("quiet", now, 0))
	b.flush(b.Recorder)
	assert.EqualValues(t, keysOfTenant+1, b.number("SELECT count(*) FROM denial_counts WHERE tenant_id = 'acme'"), "rows")
	assert.EqualValues(t, 5000, b.number("SELECT sum(n) FROM denial_counts WHERE tenant_id = 'acme'"), "are counted")
	const others = "SELECT n FROM denial_counts WHERE tenant_id = 'acme' AND meter = '(other)' AND rule = '(other)'"
	assert.EqualValues(t, 5000-keysOfTenant, b.number(others), "others")
	assert.Equal(t, float64(5000-keysOfTenant), testutil.ToFloat64(b.metrics.named), "the metric")
	assert.Zero(t, b.number("SELECT count(*) FROM denial_counts WHERE tenant_id NOT IN ('acme', 'quiet')")+b.number("SELECT count(*) FROM denials_recent WHERE tenant_id NOT IN ('acme', 'quiet')"),
		"rows of tenants that do not exist")
	assert.EqualValues(t, 1, b.number("SELECT n FROM denial_counts WHERE tenant_id = 'quiet'"), "of quiet")
	const bytes = "SELECT octet_length(items::text) FROM denials_recent WHERE tenant_id = 'acme'"
	assert.LessOrEqual(t, b.number(bytes), int64(100*1000), "bytes")
}

// The memory is bounded for any denials. Denials for which there is no room are counted.
func TestMemory_Flood_Bounded(t *testing.T) {
	t.Parallel()
	m := newMemory()
	now := time.Now()
	var lost missed
	for i := range 100_000 {
		more := m.note(&Denial{At: now.Add(time.Duration(i%7) * time.Minute), Tenant: fmt.Sprint("t", i%40_000), Code: "rate_limited", Rule: fmt.Sprint("r", i)})
		lost.counts += more.counts
		lost.explanations += more.explanations
	}
	all := m.take()
	counted, kept, keys := int64(0), int64(0), 0
	for _, n := range all {
		keys += len(n.counts)
		kept += int64(len(n.recent))
		for _, by := range n.counts {
			counted += by
		}
	}
	assert.True(t, len(all) <= shards*tenantsMax && keys <= 2*shards*keysMax && kept <= shards*recentMax,
		"%d tenants, %d keys, %d explanations", len(all), keys, kept)
	assert.True(t, counted+lost.counts == 100_000 && lost.explanations != 0,
		"%d counted, %d lost; %d explanations lost", counted, lost.counts, lost.explanations)
	assert.Empty(t, m.take(), "tenants are left")
}

// While PostgreSQL is down, no denial is lost if there is room, and no denial is counted twice.
func TestRecorder_PostgresAway_KeptInMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	b.exec("ALTER TABLE tenants RENAME TO gone") // makes all statements fail
	now := time.Now().UTC().Truncate(time.Minute)
	for i := range 130 {
		b.Note(refusal("acme", now.Add(time.Duration(i)*time.Millisecond), i))
		if i%50 == 0 {
			require.Error(t, b.Flush(t.Context()), "stored")
		}
	}
	b.exec("ALTER TABLE gone RENAME TO tenants")
	b.flush(b.Recorder)
	list := b.read(Query{Tenant: "acme", To: now.Add(time.Hour)})
	assert.True(t, len(list.Counts) == 1 && list.Counts[0].N == 130 && len(list.Denials) == Kept && list.Denials[0].RequestID == "r129" &&
		list.Denials[99].RequestID == "r30", "%+v, %d kept", list.Counts, len(list.Denials))
	assert.Zero(t, testutil.ToFloat64(b.metrics.counts), "are lost")
}

// The owner of the tables creates the partitions of the coming weeks and drops old partitions. If a partition is
// missing and the role may not create it, explanations are still stored.
func TestMaintain_Weeks_MadeAndDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	conn := testenv.Must(t).Get(b.pool.Acquire(t.Context()))
	defer conn.Release()
	weeks := func() []string {
		all := testenv.Must(t).Get(countsTable.partitions(t.Context(), conn.Conn()))
		var names []string
		for _, p := range all {
			names = append(names, p.name)
		}
		return names
	}
	later := time.Now().Add(300 * 24 * time.Hour).UTC()
	b.Note(refusal("acme", later, 1))
	b.flush(b.Recorder)
	assert.Zero(t, b.number("SELECT count(*) FROM denial_counts"), "counts")
	assert.Equal(t, 1.0, testutil.ToFloat64(b.metrics.counts), "are lost")
	list := b.read(Query{Tenant: "acme", To: later.Add(time.Second)})
	assert.Len(t, list.Denials, 1, list)
	log := slog.New(slog.DiscardHandler)
	require.NoError(t, Maintain(t.Context(), conn.Conn(), later, log))
	first := countsTable.partitionName(weekOf(later).Add(-week))
	if got := weeks(); len(got) != weeksAhead+2 || got[0] != first || ahead(mustPartitions(t, conn), later) != weeksAhead {
		t.Errorf("%v, want %s first", got, first)
	}
	b.Note(refusal("acme", later, 2))
	b.flush(b.Recorder)
	assert.EqualValues(t, 1, b.number("SELECT count(*) FROM denial_counts"), "counts")
	// The partition exists until KeptFor after the end of its week. Then it is dropped.
	end := weekOf(later).Add(week)
	for _, step := range []struct {
		at   time.Time
		kept bool
	}{{end.Add(KeptFor - time.Second), true}, {end.Add(KeptFor), false}} {
		require.NoError(t, Maintain(t.Context(), conn.Conn(), step.at, log))
		assert.Equal(t, step.kept, slices.Contains(weeks(), countsTable.partitionName(weekOf(later))), "kept at %s", step.at)
	}
}

// A tenant's explanations are deleted KeptFor after its last denial. The service's own role may do this.
func TestMaintain_OldExplanations_Forgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme", "globex")
	b.Note(refusal("acme", time.Now().Add(-KeptFor-time.Hour), 1))
	b.Note(refusal("globex", time.Now().Add(-KeptFor-time.Hour), 1))
	b.Note(refusal("globex", time.Now().Add(-KeptFor+time.Hour), 2))
	b.flush(b.Recorder)
	require.EqualValues(t, 2, b.number("SELECT count(*) FROM denials_recent"), "rows")
	b.maintain(t.Context())
	assert.EqualValues(t, 2, b.number("SELECT sum(jsonb_array_length(items)) FROM denials_recent"), "explanations are left")
	assert.EqualValues(t, 1, b.number("SELECT count(*) FROM denials_recent WHERE tenant_id = 'globex'"), "the two of globex")
}

func mustPartitions(t *testing.T, conn *pgxpool.Conn) []partition {
	t.Helper()
	return testenv.Must(t).Get(countsTable.partitions(t.Context(), conn.Conn()))
}

// A list has at most CountsMax counts. If there are more, the list names the first minute from which the counts are
// complete.
func TestRead_ManyCounts_SaysFromWhereTheyAreComplete(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	end := time.Now().UTC().Truncate(time.Minute)
	b.exec(`INSERT INTO denial_counts SELECT 'acme', $1::timestamptz - i * interval '1 minute', 'rate_limited', 'calls', 'r' || j, 1
		FROM generate_series(1, 1440) AS i, generate_series(1, 2) AS j`, end)
	list := b.read(Query{Tenant: "acme", To: end})
	assert.True(t, len(list.Counts) == CountsMax && list.CountsFrom.Equal(end.Add(-CountsMax/2*time.Minute)),
		"%d counts from %s", len(list.Counts), list.CountsFrom)
	before := b.read(Query{Tenant: "acme", To: list.CountsFrom, From: end.Add(-24 * time.Hour)})
	assert.True(t, len(before.Counts) == 880 && before.CountsFrom.IsZero(), "%d counts before", len(before.Counts))
}

func TestStatements_MigratedSchema_Prepare(t *testing.T) {
	t.Parallel()
	testenv.Statements(t, queries)
}

func BenchmarkNote(b *testing.B) {
	m := newMemory()
	d := refusal("acme", time.Now(), 1)
	d.Subject, d.Route = "ann", "/v1/search"
	b.ReportAllocs()
	for b.Loop() {
		m.note(d)
	}
}

// systemClock reads the time of this machine.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// While take empties some shards, other shards are still written. The race detector finds reads without the lock of a
// shard.
func TestMemory_TakenWhileNoted_NothingIsLost(t *testing.T) {
	t.Parallel()
	const callers, each = 4, 500
	m := newMemory()
	var noting sync.WaitGroup
	for i := range callers {
		noting.Go(func() {
			for j := range each {
				d := refusal(fmt.Sprint("t", i, "-", j%7), time.Now(), j)
				m.note(d)
			}
		})
	}
	done := make(chan struct{})
	go func() { noting.Wait(); close(done) }()
	var counted int64
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}
		for _, n := range m.take() {
			counted += n.all().counts
		}
	}
	assert.True(t, counted == callers*each, "%d counted, want %d", counted, callers*each)
}
