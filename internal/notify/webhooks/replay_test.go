package webhooks

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// A replay whose connection breaks at any statement queues all its deliveries or none. The next one queues the rest,
// and no delivery twice.
func TestReplay_CutAtEachStatement_NextOneQueuesTheRest(t *testing.T) {
	testenv.NotOnCitus(t, "the link is to one server")
	t.Parallel()
	b := newQuietBundle(t)
	r := newReceiver(t, nil)
	w, _ := b.webhook(r.URL)
	const told = 20
	for range told {
		b.tell("acme")
	}
	n, err := events.Number(t.Context(), b.pool, b.Queue)
	require.True(t, n == told && err == nil, "%v, %v", n, err)
	b.exec("DELETE FROM webhook_deliveries; DELETE FROM river_job")
	number := func(query string) (n int) {
		require.NoError(t, b.db.QueryRow(t.Context(), query).Scan(&n))
		return n
	}
	const (
		pending = "SELECT count(*) FROM webhook_deliveries WHERE status = 'pending'"
		jobs    = "SELECT count(*) FROM river_job"
		lines   = "SELECT count(*) FROM audit WHERE action = 'webhook.replay'"
	)
	link := testenv.NewCutLink(t, b.db.Config().ConnString())
	pool := connect(t, link.URL)
	cut, err := New(Config{
		Pool: pool, DB: testenv.Store(pool), AllowPrivate: true, Log: slog.New(slog.DiscardHandler),
		Metrics: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	kills := 0
	for nth := 1; ; nth++ {
		link.Cut(testenv.Cut{Nth: nth})
		_, err := cut.Replay(t.Context(), w.ID, time.Now().Add(-time.Hour), time.Time{}, anybody)
		n := number(pending)
		whole := (n == 0 || n == told) && number(jobs) == n && (n == 0) == (number(lines) == 0)
		require.True(t, whole, "cut at %s: %d deliveries, %d jobs", link.BrokeAt(), n, number(jobs))
		if link.BrokeAt() == "" {
			require.NoError(t, err)
			break
		}
		kills++
	}
	assert.True(t, kills >= 5 && number(pending) == told, "%d kills, %d deliveries", kills, number(pending))
	b.start()
	b.eventually("all are told", func() bool { return len(r.ids()) == told })
	assert.Len(t, r.got(), told, "calls")
}
