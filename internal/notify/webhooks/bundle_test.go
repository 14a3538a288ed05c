package webhooks

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bundle is a service with its own database, and a goroutine that assigns positions to events.
type bundle struct {
	*Service
	t    testing.TB
	pool *pgxpool.Pool // pool with the service's role
	db   *pgxpool.Pool // pool of the test, whose role has all rights
}

func newBundle(t testing.TB, change ...func(*pace)) *bundle {
	t.Helper()
	b := newQuietBundle(t, change...).start()
	return b
}

// newQuietBundle returns a bundle that does not list or deliver events yet. No test reaches the deadline of its
// calls, unless the functions in change set a shorter deadline.
func newQuietBundle(t testing.TB, change ...func(*pace)) *bundle {
	t.Helper()
	p := pace{call: testenv.Patience, follow: 50 * time.Millisecond, sweep: time.Second, poll: 200 * time.Millisecond}
	for _, f := range change {
		f(&p)
	}
	url := testenv.Postgres(t)
	b := &bundle{t: t, pool: connect(t, testenv.AsService(url)), db: connect(t, url)}
	var err error
	b.Service, err = New(Config{
		Pool: b.pool, DB: testenv.Store(b.pool), AllowPrivate: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Metrics: prometheus.NewRegistry(), pace: p,
	})
	require.NoError(t, err)
	return b
}

func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	cfg := testenv.Must(t).Get(pgxpool.ParseConfig(url))
	cfg.MaxConns = 8
	pool := testenv.Must(t).Get(pgxpool.NewWithConfig(t.Context(), cfg))
	t.Cleanup(pool.Close)
	return pool
}

func (b *bundle) start() *bundle {
	b.t.Helper()
	require.NoError(b.t, b.Start(b.t.Context()))
	dispatcher := events.NewDispatcher(events.DispatcherConfig{
		Pool: b.pool, Sweep: func(context.Context) error { return nil }, Clock: systemClock{}, Each: b.Queue, Log: slog.New(slog.NewTextHandler(b.t.Output(), nil)),
		Metrics: prometheus.NewRegistry(),
	})
	dispatcher.Start()
	testenv.StopAtEnd(b.t, b.Stop)
	testenv.StopAtEnd(b.t, dispatcher.Stop)
	return b
}

// tell inserts one event for each tenant, all in one transaction.
func (b *bundle) tell(tenants ...string) {
	b.t.Helper()
	at := time.Now()
	err := pgx.BeginFunc(b.t.Context(), b.db, func(tx pgx.Tx) error {
		var all []events.Event
		for i, tenant := range tenants {
			all = append(all, events.Event{Type: events.TenantSuspended, At: at.Add(time.Duration(i) * time.Microsecond), Tenant: tenant, Data: events.Change{Plan: "p"}})
		}
		return events.Record(b.t.Context(), tx, all)
	})
	require.NoError(b.t, err)
}

func (b *bundle) webhook(url string, change ...func(*Change)) (Webhook, string) {
	b.t.Helper()
	c := Change{URL: &url, Types: []string{string(events.TenantSuspended)}}
	for _, f := range change {
		f(&c)
	}
	w, secret, err := b.Create(b.t.Context(), c)
	require.NoError(b.t, err)
	return w, secret
}

func anybody(*Webhook) error { return nil }

func (b *bundle) deliveries(id, status string) []Delivery {
	b.t.Helper()
	list := testenv.Must(b.t).Get(b.Deliveries(b.t.Context(), id, DeliveryQuery{Status: status, Limit: 500}, anybody))
	return list.Items
}

func (b *bundle) eventually(what string, reached func() bool) {
	b.t.Helper()
	testenv.Eventually(b.t, reached, what)
}

// eventuallyAgain is like eventually, for results that need further attempts. It ends the pauses before these
// attempts.
func (b *bundle) eventuallyAgain(what string, reached func() bool) {
	b.t.Helper()
	testenv.Eventually(b.t, func() bool {
		b.exec("UPDATE river_job SET state = 'available', scheduled_at = now() WHERE state = 'scheduled'")
		return reached()
	}, what)
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	testenv.Exec(b.t, b.db, sql, args...)
}

// received is a call that a receiver has got.
type received struct {
	header http.Header
	body   []byte
}

// verified reports whether the library of Standard Webhooks accepts the signature of the call with this secret.
func (r *received) verified(t testing.TB, secret string) bool {
	t.Helper()
	return testenv.Must(t).Get(standardwebhooks.NewWebhook(secret)).Verify(r.body, r.header) == nil
}

func (r *received) id() string { return r.header.Get("webhook-id") }

// receiver is an HTTP server that stores the calls that it gets.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	calls []received
}

// newReceiver returns a receiver that answers each call with answer. If answer is nil, it answers with status 204.
func newReceiver(t testing.TB, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.calls = append(r.calls, received{q.Header.Clone(), body})
		r.mu.Unlock()
		answer(w, q)
	}))
	t.Cleanup(r.Close)
	t.Cleanup(r.CloseClientConnections)
	return r
}

// hang sends no answer until the caller has closed the connection or the test has ended.
func hang(t testing.TB) http.HandlerFunc {
	return func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-t.Context().Done():
		case <-q.Context().Done():
		}
	}
}

func (r *receiver) got() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received{}, r.calls...)
}

// ids returns for each event id how often the event was received.
func (r *receiver) ids() map[string]int {
	out := map[string]int{}
	for _, c := range r.got() {
		out[c.id()]++
	}
	return out
}

// systemClock is the time of this machine.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
