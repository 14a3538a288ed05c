package transport

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/proven"
)

// echoPart returns a part that sends back the first byte of each connection.
func echoPart(most int, drained, stopped *atomic.Bool) *Part {
	return &Part{
		Name: "echo", Protocol: "echo", ConnectionsMax: most,
		Serve: func(l net.Listener) error {
			for {
				conn, err := l.Accept()
				if err != nil {
					return err
				}
				go func() {
					_, _ = io.CopyN(conn, conn, 1)
					_ = conn.Close()
					_ = conn.Close() // closing twice counts as one end
				}()
			}
		},
		Drain: func() { drained.Store(true) },
		Stop:  func(context.Context) error { stopped.Store(true); return nil },
	}
}

func TestPart_ServedCountedAndStoppedWithTheAPI(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var drained, stopped atomic.Bool
		registry, l := prometheus.NewRegistry(), newPipes()
		s, _ := startInBubble(t, well, func(cfg *Config) { cfg.Metrics, cfg.DrainDelay = registry, 300*time.Millisecond })
		s.server.ServePart(echoPart(1, &drained, &stopped), l)
		echoed := func(conn net.Conn) bool {
			_, err := conn.Write([]byte("x"))
			got := make([]byte, 1)
			_, failed := io.ReadFull(conn, got)
			return err == nil && failed == nil
		}
		first := l.open(t)
		metric := `
# HELP quotasvc_http_connections_refused_total Connections closed at once because there were too many, by listener.
# TYPE quotasvc_http_connections_refused_total counter
quotasvc_http_connections_refused_total{listener="api"} 0
quotasvc_http_connections_refused_total{listener="echo"} 1
quotasvc_http_connections_refused_total{listener="ops"} 0
`
		assert.False(t, echoed(l.open(t)), "a connection beyond the maximum is served")
		err := testutil.GatherAndCompare(registry, strings.NewReader(metric), "quotasvc_http_connections_refused_total")
		assert.NoError(t, err)
		assert.True(t, echoed(first), "the first connection is not served")
		synctest.Wait()
		assert.Zero(t, testutil.ToFloat64(s.server.metrics.open.WithLabelValues("echo")),
			"connections are counted after their end")
		ended := make(chan error, 1)
		go func() { ended <- s.server.Shutdown(t.Context()) }()
		synctest.Wait()
		assert.True(t, drained.Load() && !stopped.Load() && echoed(l.open(t)),
			"the part does not serve while the service drains")
		err = <-ended
		assert.True(t, err == nil && stopped.Load(), "stopped %t, %v", stopped.Load(), err)
	})
}

// A connection that shows no right key in time is closed. One that has shown a right key stays.
func TestPart_NoRightKeyInTime_Closed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var drained, stopped atomic.Bool
		l := newPipes()
		s, _ := startInBubble(t, well, func(cfg *Config) { cfg.DrainDelay = 300 * time.Millisecond })
		part := echoPart(5, &drained, &stopped)
		accepted := make(chan net.Conn, 2)
		part.KeyWithin = 5 * time.Second
		part.Serve = func(l net.Listener) error {
			for {
				conn, err := l.Accept()
				if err != nil {
					return err
				}
				accepted <- conn
			}
		}
		s.server.ServePart(part, l)
		l.open(t)
		l.open(t)
		known, stranger := <-accepted, <-accepted
		defer known.Close()
		known.RemoteAddr().(*proven.Addr).Note()
		began := time.Now()
		_, err := stranger.Read(make([]byte, 1))
		assert.True(t, err != nil && time.Since(began) == part.KeyWithin, "after %s: %v", time.Since(began), err)
		_ = stranger.Close()
		require.NoError(t, known.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = known.Read(make([]byte, 1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "the known connection is closed")
	})
}

// at is a connection from an address.
type at struct {
	net.Conn

	from address
}

func (a at) RemoteAddr() net.Addr { return a.from }

// The last tenth of the connections is for addresses from which a right key came, on any listener.
func TestCapped_LastTenth_ForKnownAddresses(t *testing.T) {
	t.Parallel()
	s := New(Config{Ops: http.NotFoundHandler(), ConnectionsMax: 20, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	c := newCapped(newPipes(), 20, s.metrics, "api", s.known)
	stranger, caller := at{from: "192.0.2.1:1"}, at{from: "[2001:db8::1]:1"}
	assert.EqualValues(t, 18, c.mostFor(stranger))
	assert.EqualValues(t, 18, c.mostFor(caller))
	v := s.visitor(caller.RemoteAddr())
	v.Note()
	assert.EqualValues(t, 20, c.mostFor(at{from: "[2001:db8::1]:2"}), "another connection from there")
	assert.EqualValues(t, 18, c.mostFor(stranger))
	assert.Same(t, v, s.visitor(v), "a connection with TLS has the same visitor")
	assert.EqualValues(t, 64, newCapped(newPipes(), 64, s.metrics, "ops", nil).mostFor(stranger), "operators need no key")
}

func TestPart_Fails_AllEnds(t *testing.T) {
	t.Parallel()
	var drained, stopped atomic.Bool
	part := echoPart(1, &drained, &stopped)
	part.Serve = func(l net.Listener) error { return errors.Join(errors.New("no more"), l.Close()) }
	s := start(t, func(http.ResponseWriter, *http.Request) {})
	s.server.ServePart(part, listen(t))
	if err := s.server.Wait(); err == nil || !strings.Contains(err.Error(), "no more") || !stopped.Load() {
		t.Errorf("stopped %t, %v", stopped.Load(), err)
	}
	_ = s.server.Shutdown(t.Context()) // it returns the same error
}
