package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
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
