package status

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// now is the present instant of the ledger's clock in these tests.
var now = time.Date(2026, 11, 25, 14, 5, 30, 0, time.UTC)

type bench struct {
	*Board
	t        *testing.T
	pool     *pgxpool.Pool // connections of the superuser
	requests *prometheus.CounterVec
	reader   *history.Reader
}

func newBench(t *testing.T) *bench {
	t.Helper()
	url := testenv.Postgres(t)
	b := &bench{t: t, pool: testenv.Pool(t, url)}
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
	registry := prometheus.NewRegistry()
	b.requests = prometheus.NewCounterVec(prometheus.CounterOpts{Name: requestsMetric}, []string{"route", "method", "status"})
	registry.MustRegister(b.requests)
	b.Board = New(Config{Reports: b.reader, Clock: clockAt(now), Counted: registry, Log: log, Faults: func() []Fault {
		return []Fault{{"redis", "no answer"}}
	}})
	return b
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	testenv.Exec(b.t, b.pool, sql, args...)
}

// refused stores n refusals of a tenant in the minute that contains the instant now - ago.
func (b *bench) refused(tenant, code string, ago time.Duration, n int) {
	b.t.Helper()
	b.exec("INSERT INTO denial_counts (tenant_id, minute, code, meter, rule, n) VALUES ($1, $2, $3, '', '', $4)", tenant, now.Add(-ago).Truncate(time.Minute), code, n)
}

func TestRead_CountsRefusalsOfTheLastHourByTenant(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for week := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC); week.Before(now); week = week.AddDate(0, 0, 7) {
		b.exec("CREATE TABLE IF NOT EXISTS denial_counts_" + week.Format("2006_01_02") + " PARTITION OF denial_counts FOR VALUES FROM ('" + week.Format(time.DateOnly) + "') TO ('" + week.AddDate(0, 0, 7).Format(time.DateOnly) + "')")
	}
	b.refused("acme", "quota_exceeded", 0, 3)
	b.refused("acme", "rate_limited", time.Minute, 4)
	b.refused("globex", "rate_limited", time.Hour, 5)
	b.refused("globex", "rate_limited", time.Hour+time.Minute, 100) // before the last hour
	for i := range tenantsMax {
		b.refused("small-"+string(rune('a'+i)), "rate_limited", 2*time.Minute, 1)
	}
	got := b.Read(t.Context())
	require.NotNil(t, got.Records, "no records: %v", got.Faults)
	r := got.Records.Refusals
	minute := now.Truncate(time.Minute)
	want := Refusals{From: minute.Add(-time.Hour), To: minute.Add(time.Minute), Total: 3 + 4 + 5 + tenantsMax, Minutes: []Minute{
		{minute.Add(-time.Hour), 5}, {minute.Add(-2 * time.Minute), tenantsMax}, {minute.Add(-time.Minute), 4}, {minute, 3},
	}}
	tenants := r.Tenants
	r.Tenants = nil
	assert.Equal(t, want, r)
	assert.Equal(t, []Refused{{"acme", 7, "rate_limited"}, {"globex", 5, "rate_limited"}, {"small-a", 1, "rate_limited"}}, tenants[:3])
	assert.Len(t, tenants, tenantsMax, "tenants")
	b.refused("late", "rate_limited", 3*time.Minute, 9)
	assert.True(t, b.Read(t.Context()).Records == got.Records, "the records were read again at once")
}

func TestRead_LastJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if r := b.Read(t.Context()).Records; r == nil || r.Verification != nil || r.Roll != nil || r.Seal != nil || r.Archive != nil {
		t.Fatalf("of a new database: %+v", r)
	}
	at := func(hours int) time.Time { return now.Add(time.Duration(hours) * time.Hour) }
	const verification = "INSERT INTO verifications (verification_id, tenant_id, status, started_at, heartbeat_at, finished_at) VALUES ($1, $2, $3, $4, $4, $5)"
	b.exec(verification, "v-old", "", "drift", at(-3), at(-2))
	b.exec(verification, "v-new", "acme", "clean", at(-2), at(-1))
	b.exec("INSERT INTO rolls (roll_id, as_of, status, total, processed, started_at, heartbeat_at) VALUES ('r-1', $1, 'running', 7, 3, $1, $1)", at(-5))
	b.exec("INSERT INTO seals (position, day, heads, root, checkpoint, sealed_at) VALUES (0, '2026-11-24', 12, decode(repeat('00', 32), 'hex'), '', $1)", at(-4))
	b.exec("INSERT INTO archives (month, manifest, archived_at) VALUES ('2025-10-01', '', $1)", at(-6))
	b.records.until = time.Time{}
	r := b.Read(t.Context()).Records
	want := &Records{
		Refusals:     r.Refusals,
		Verification: &Job{ID: "v-new", Tenant: "acme", Status: "clean", StartedAt: at(-2), FinishedAt: at(-1)},
		Roll:         &Roll{Job: Job{ID: "r-1", Status: "abandoned", StartedAt: at(-5)}, AsOf: at(-5), Total: 7, Processed: 3},
		Seal:         &Seal{Day: time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC), Heads: 12, SealedAt: at(-4)},
		Archive:      &Archive{Month: time.Date(2025, 10, 1, 0, 0, 0, 0, time.UTC), ArchivedAt: at(-6)},
	}
	assert.Equal(t, want, r)
}

// An instance without requests is well.
func TestRead_NoRequestYet_NoWarning(t *testing.T) {
	t.Parallel()
	var log testenv.Log
	registry := prometheus.NewRegistry()
	b := New(Config{Counted: registry, Log: slog.New(slog.NewTextHandler(&log, nil))})
	got := b.since(time.Now())
	assert.True(t, got.Answered == 0 && log.String() == "", "%+v %s", got, log.String())
	registry.MustRegister(faulty{})
	b.since(time.Now())
	assert.Contains(t, log.String(), "cannot be read")
}

// faulty is a collector whose metrics cannot be read.
type faulty struct{}

func (faulty) Describe(chan<- *prometheus.Desc) {}

func (faulty) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(errors.New("broken")), errors.New("broken"))
}

func TestRead_RequestsOfTheWindow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	count := func(status string, n float64) { b.requests.WithLabelValues("/v1/debits", "POST", status).Add(n) }
	began := b.started
	count("200", 10)
	b.sample(began.Add(10 * time.Second))
	for _, status := range []string{"402", "403", "429"} {
		count(status, 1)
	}
	count("404", 2)
	count("503", 4)
	want := Requests{From: began.UTC(), Answered: 19, Refused: 3, Failed: 4}
	assert.Equal(t, want, b.since(began.Add(20*time.Second)))
	// The sample at 10 s is the newest that is at least a minute old.
	want = Requests{From: began.Add(10 * time.Second).UTC(), Answered: 9, Refused: 3, Failed: 4}
	assert.Equal(t, want, b.since(began.Add(75*time.Second)))
	for i := range 1000 {
		b.sample(began.Add(80*time.Second + time.Duration(i)*5*time.Second))
	}
	assert.True(t, len(b.samples) <= 14, "%d samples are kept", len(b.samples))
}

// If PostgreSQL cannot be read, Read still returns an answer, and a fault names the missing data.
func TestRead_RecordsAway_SaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.NoError(t, b.reader.Stop(t.Context()))
	got := b.Read(t.Context())
	assert.True(t, got.Records == nil && len(got.Faults) == 2 && got.Faults[0] == (Fault{"redis", "no answer"}) &&
		strings.Contains(got.Faults[1].Reason, "cannot reach its database"), got)
}

func TestStart_Stop_LeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Start()
	require.NoError(t, b.Stop(t.Context()))
}

// clockAt is a clock that does not move.
type clockAt time.Time

func (c clockAt) Now() time.Time { return time.Time(c) }
