package denial

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shadow reads the counts of a limit at the instant now. It returns them by the names of their spans.
func (b *bench) shadow(now time.Time, rule string) map[string]ShadowCount {
	b.t.Helper()
	counts, err := ReadShadow(b.t.Context(), b.reader, now, rule)
	require.NoError(b.t, err)
	by := map[string]ShadowCount{}
	for _, c := range counts {
		by[c.Span] = c
	}
	return by
}

// saysOf notes the same decision of a limit in shadow mode n times.
func saysOf(r *Recorder, n int, s Shadow) {
	for range n {
		r.NoteShadow(&s)
	}
}

// The counts of two instances are added, separately for each outcome of the requests. If a request passes with the
// limit and without it, the request is not counted.
func TestShadows_TwoInstances_AddUpByWhatBecameOfTheRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme", "globex")
	other := b.open()
	now := time.Now().UTC()
	for i, r := range []*Recorder{b.Recorder, other, b.Recorder} {
		saysOf(r, 10, Shadow{At: now, Tenant: "acme", Rule: "strict", Denies: true})
		saysOf(r, 2, Shadow{At: now.Add(-5 * time.Minute), Tenant: "globex", Rule: "strict", Denies: true})
		saysOf(r, 5, Shadow{At: now, Tenant: "acme", Rule: "strict", Refused: true, RefusedBy: "live", Denies: true})
		saysOf(r, 7, Shadow{At: now, Tenant: "globex", Rule: "strict", Refused: true, RefusedBy: "live"})
		saysOf(r, 1, Shadow{At: now, Tenant: "globex", Rule: "strict", Refused: true, RefusedBy: "other"})
		saysOf(r, 3, Shadow{At: now, Tenant: "globex", Rule: "strict", Refused: true, Denies: true})
		saysOf(r, 9, Shadow{At: now, Tenant: "globex", Rule: "strict", Refused: true})
		saysOf(r, 9, Shadow{At: now, Tenant: "globex", Rule: "strict"})
		saysOf(r, 9, Shadow{At: now, Tenant: "nobody", Rule: "strict", Denies: true})
		saysOf(r, 4, Shadow{At: now, Tenant: "globex", Rule: "lax", Denies: true})
		if i > 0 {
			b.flush(r)
		}
	}
	b.flush(b.Recorder)
	got := b.shadow(now, "strict")
	for span, c := range got {
		want := ShadowCount{
			Span: span, From: c.From, To: now.Add(time.Minute).Truncate(time.Minute), Denies: 36, Tenants: 2, Top: []ShadowTenant{{"acme", 30}, {"globex", 6}}, DeniesRefused: 9,
			Limits: []ShadowLimit{{"live", 15, 21}, {"other", 0, 3}},
		}
		assert.Equal(t, want, c, span)
	}
	assert.Len(t, got, 3)
	c := b.shadow(now, "nothing")["week"]
	assert.True(t, c.Denies == 0 && c.Tenants == 0 && len(c.Top)+len(c.Limits) == 0, c)
	// A shadow adds no denial and no event.
	assert.Zero(t, b.number("SELECT (SELECT count(*) FROM denial_counts) + (SELECT count(*) FROM denials_recent) + (SELECT count(*) FROM events)"),
		"rows of denials")
	assert.Zero(t, b.number("SELECT count(*) FROM shadow_counts WHERE tenant_id = 'nobody'"),
		"rows of a tenant that does not exist")
}

// Each span begins at a full minute, although most of a week is the sum of counts of hours.
func TestReadShadow_Spans_BeginToTheMinute(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	now := time.Now().UTC().Truncate(time.Hour).Add(25*time.Minute + 10*time.Second)
	to := now.Truncate(time.Minute).Add(time.Minute)
	for _, back := range []time.Duration{
		time.Minute, 30 * time.Minute, time.Hour, time.Hour + time.Minute, 2 * time.Hour, 24 * time.Hour, 24*time.Hour + time.Minute, 3 * 24 * time.Hour, week, week + time.Minute,
	} {
		saysOf(b.Recorder, 1, Shadow{At: to.Add(-back), Tenant: "acme", Rule: "r", Denies: true})
	}
	b.flush(b.Recorder)
	got := b.shadow(now, "r")
	for span, want := range map[string]int64{"hour": 3, "day": 6, "week": 9} {
		if c := got[span]; c.Denies != want || !c.To.Equal(to) {
			t.Errorf("%s: %d requests in %s to %s, want %d", span, c.Denies, c.From, c.To, want)
		}
	}
	d := got["day"]
	assert.True(t, d.From.Equal(to.Add(-24*time.Hour)), "a day begins at %s", d.From)
}

// While the table of shadow counts is missing, no count is lost if there is room, and no request is counted twice.
// Denials are still stored.
func TestShadows_TableAway_KeptInMemory_DenialsStored(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme").exec("ALTER TABLE shadow_counts RENAME TO gone")
	now := time.Now().UTC()
	for i := range 6 {
		saysOf(b.Recorder, 20, Shadow{At: now, Tenant: "acme", Rule: "r", Denies: true})
		b.Note(refusal("acme", now, i))
		require.Error(t, b.Flush(t.Context()), "stored")
	}
	assert.EqualValues(t, 6, b.number("SELECT sum(n) FROM denial_counts"), "denials are stored")
	b.exec("ALTER TABLE gone RENAME TO shadow_counts")
	b.flush(b.Recorder)
	b.flush(b.Recorder)
	assert.EqualValues(t, 120, b.shadow(now, "r")["hour"].Denies)
	assert.Zero(t, testutil.ToFloat64(b.metrics.shadows), "are lost")
}

// The weekly partitions of shadow counts are created in advance and dropped, like the partitions of denials. If a
// partition is missing and the role may not create it, no shadow is counted, and a log line reports this.
func TestMaintain_ShadowWeeks_MadeAndDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t, "acme")
	conn, err := b.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	later := time.Now().Add(300 * 24 * time.Hour).UTC()
	says := Shadow{At: later, Tenant: "acme", Rule: "r", Denies: true}
	saysOf(b.Recorder, 4, says)
	b.flush(b.Recorder)
	assert.Equal(t, 4.0, testutil.ToFloat64(b.metrics.shadows), "are lost")
	assert.Zero(t, b.number("SELECT count(*) FROM shadow_counts"))
	left, err := weeksLeft(t.Context(), conn.Conn(), later)
	assert.True(t, err == nil && left == -1, "%d weeks, %v", left, err)
	log := slog.New(slog.DiscardHandler)
	require.NoError(t, Maintain(t.Context(), conn.Conn(), later, log))
	left, err = weeksLeft(t.Context(), conn.Conn(), later)
	assert.True(t, err == nil && left == weeksAhead, "%d weeks, %v", left, err)
	saysOf(b.Recorder, 4, says)
	b.flush(b.Recorder)
	assert.EqualValues(t, 4, b.shadow(later, "r")["hour"].Denies)
	require.NoError(t, Maintain(t.Context(), conn.Conn(), weekOf(later).Add(week+KeptFor), log))
	assert.Zero(t, b.number("SELECT count(*) FROM shadow_counts"), "rows are left")
}

// Memory is bounded for any decisions of limits in shadow mode. The memory of denials keeps its room, and losses are
// counted.
func TestShadows_Flood_Bounded(t *testing.T) {
	t.Parallel()
	m := newShadows()
	now := time.Now()
	const all = 200_000
	var lost int64
	for i := range all {
		lost += m.note(&Shadow{At: now.Add(time.Duration(i%7) * time.Minute), Tenant: fmt.Sprint("t", i%40_000), Rule: fmt.Sprint("r", i%11), Denies: true})
	}
	var one int64
	for i := range 1000 {
		one += m.note(&Shadow{At: now.Add(time.Duration(i) * time.Minute), Tenant: "t1", Rule: "r", Denies: true})
	}
	taken := m.take()
	keys, counted := 0, int64(0)
	for _, n := range taken {
		keys += len(n)
		counted += n.total()
	}
	if len(taken) > shards*tenantsMax || keys > shards*keysMax || len(taken["t1"]) > shadowKeysOfTenant {
		t.Errorf("%d tenants, %d keys, %d of one", len(taken), keys, len(taken["t1"]))
	}
	assert.True(t, lost != 0 && one != 0 && counted+lost+one == all+1000,
		"%d counted, %d and %d lost", counted, lost, one)
	assert.Empty(t, m.take(), "tenants are left")
}

// If the same decision is noted again, it only adds to the existing count. It allocates nothing and sends no query.
func TestNoteShadow_KnownCount_AllocatesNothing(t *testing.T) {
	b := &Recorder{shadows: newShadows(), cfg: Config{Clock: systemClock{}}}
	at := time.Now()
	note := func() {
		b.NoteShadow(&Shadow{At: at, Tenant: "acme", Rule: "strict", Refused: true, RefusedBy: "live", Denies: true})
		b.NoteShadow(&Shadow{Tenant: "acme", Rule: "strict"})
	}
	note()
	assert.Zero(t, testing.AllocsPerRun(1000, note), "allocations")
}

// A limit in shadow mode would deny all requests. It has thousands of tenants in each of five hours and of three
// minutes. The answer must stay short.
func TestReadShadow_ManyTenants_Bounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.Now().UTC().Truncate(time.Hour).Add(30 * time.Minute)
	const tenants = 4_000
	// The minutes are in the previous hour. For the span of an hour, that hour is read by minutes.
	b.exec(`INSERT INTO shadow_counts (rule, every, since, tenant_id, refused_by, denies, passes)
		SELECT 'all', 60, $1::timestamptz - h * interval '30 hours', 't' || i, '', 1 + (i = 7)::int, 0 FROM generate_series(1, $2::integer) AS i, generate_series(0, 4) AS h
		UNION ALL
		SELECT 'all', 1, $1::timestamptz - (2 + 3 * m) * interval '1 minute', 't' || i, 'live' || i % 40, 1, 1 FROM generate_series(1, $2::integer) AS i, generate_series(0, 2) AS m`,
		now.Truncate(time.Hour), tenants)
	b.exec("ANALYZE shadow_counts")
	counts, err := ReadShadow(t.Context(), b.reader, now, "all")
	require.NoError(t, err)
	for _, c := range counts {
		hours := map[string]int64{"hour": 1, "day": 1, "week": 5}[c.Span]
		assert.True(t, c.Denies == hours*(tenants+1) && c.Tenants == tenants && len(c.Top) == ShadowTop &&
			c.Top[0] == (ShadowTenant{"t7", 2 * hours}), "%s: %d of %d tenants, %+v", c.Span, c.Denies, c.Tenants, c.Top)
		limits := map[string]int{"hour": ShadowRefusers}[c.Span] // longer spans read hours, which have no such limits
		if len(c.Limits) != limits || limits > 0 && c.Limits[0].Denies+c.Limits[0].Passes != 2*3*tenants/40 {
			t.Errorf("%s: %+v", c.Span, c.Limits)
		}
	}
}
