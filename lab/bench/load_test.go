package bench

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a handler and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestClient_AnswerOtherThan200_CountsAsError(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%4 == 0 {
			http.Error(w, "no", http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte("{}"))
	})
	clients, err := dial(t.Context(), at, 2)
	require.NoError(t, err)
	t.Cleanup(func() { closeAll(clients) })
	tm := newTemplate("/", "", "{}", 1)
	var asked atomic.Int64
	s, err := closedLoop(t.Context(), 2, testenv.Patience, func(i int) (outcome, error) {
		if asked.Add(1) > 40 {
			return outcome{}, errEnough
		}
		status, err := clients[i].send(tm, 1, 1)
		return clients[i].outcome(status, tm), err
	})
	require.NoError(t, err)
	require.Equal(t, []int64{40, 40}, []int64{calls.Load(), s.sent})
	require.EqualValues(t, 10, s.errors)
	require.Equal(t, s.sent-s.errors, s.units)
}

func TestClient_RefusalInABatch_CountsAsError(t *testing.T) {
	t.Parallel()
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"results":[{"status":200},{"status":503,"code":"unavailable"},{"status":200}]}`))
	})
	clients, err := dial(t.Context(), at, 1)
	require.NoError(t, err)
	t.Cleanup(func() { closeAll(clients) })
	tm := newTemplate("/", "", "{}", 3)
	calls := 0
	s, err := closedLoop(t.Context(), 1, testenv.Patience, func(i int) (outcome, error) {
		if calls++; calls > 2 {
			return outcome{}, errEnough
		}
		status, err := clients[i].send(tm, 1, 1)
		return clients[i].outcome(status, tm), err
	})
	require.NoError(t, err)
	require.EqualValues(t, []int64{2, 4, 2}, []int64{s.sent, s.units, s.errors})
}

func TestOpenLoop_WaitForConnection_CountsAsLatency(t *testing.T) {
	t.Parallel()
	const took = 20 * time.Millisecond
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(took):
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte("{}"))
	})
	clients, err := dial(t.Context(), at, 1)
	require.NoError(t, err)
	t.Cleanup(func() { closeAll(clients) })
	var seq atomic.Uint64
	// One connection can send 50 requests/s; 200 requests/s are due.
	s, err := openLoop(t.Context(), clients, &seq, steady{t: newTemplate("/", "", "{}", 1), tenants: 1, rate: 200, d: 250 * time.Millisecond, drain: drainMax, tick: paceTick})
	require.NoError(t, err)
	require.EqualValues(t, 50, s.sent)
	// The last of 50 requests was due after 250 ms and is answered after a second at the earliest.
	require.Greater(t, s.latency.Max(), (600 * time.Millisecond).Microseconds())
}

func TestOpenLoop_ContextEnds_Ends(t *testing.T) {
	t.Parallel()
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	clients, err := dial(t.Context(), at, 1)
	require.NoError(t, err)
	t.Cleanup(func() { closeAll(clients) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var seq atomic.Uint64
	_, err = openLoop(ctx, clients, &seq, steady{t: newTemplate("/", "", "{}", 1), tenants: 1, rate: 10, d: time.Minute, drain: drainMax, tick: paceTick})
	require.ErrorIs(t, err, context.Canceled)
}
