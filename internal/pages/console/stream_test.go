package console

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// streamed is a server whose only page is a stream. The events of a stream have the data 1, 2, 3 and so on.
type streamed struct {
	*streams
	t   *testing.T
	url string

	hurried bool // the server may abort a request before the first event
}

func newStreamed(t *testing.T, last int, limit ...time.Duration) *streamed {
	t.Helper()
	s := &streamed{streams: newStreams(), t: t}
	s.every = 20 * time.Millisecond
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		s.send(w, r, r.URL.Query().Get("session"), func(context.Context) (event, bool) {
			n++
			return event{"now", "<p>" + strconv.Itoa(n) + "</p>\r\n<b>x</b>"}, n == last
		})
	}))
	for _, l := range limit {
		server.Config.ReadTimeout, server.Config.WriteTimeout = l, l
	}
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// opened is an open stream.
type opened struct {
	http.Header

	body io.ReadCloser
}

// open opens a stream of a session. The stream ends with the test.
func (s *streamed) open(session string) opened {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testenv.Patience)
	s.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"?session="+session, nil)
	require.NoError(s.t, err)
	got, err := http.DefaultClient.Do(r)
	if err != nil && s.hurried {
		return opened{http.Header{}, http.NoBody}
	}
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = got.Body.Close() })
	return opened{got.Header, got.Body}
}

// events returns the names of the next n events. It returns fewer names if the stream ends.
func events(got opened, n int) (names []string) {
	for lines := bufio.NewScanner(got.body); len(names) < n && lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			names = append(names, name)
		}
	}
	return names
}

// count waits until exactly want streams are open.
func (s *streamed) count(want int) {
	s.t.Helper()
	testenv.Eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.all == want && (want > 0 || len(s.streams.open) == 0)
	}, "there are ", want, " streams")
}

// A stream lasts longer than the server's time limits for a request, and ends only with its last event. On a busy
// machine, the server may not even read a request within these limits. Then the test sends the request again.
func TestStream_OutlastsTheServersLimits(t *testing.T) {
	t.Parallel()
	const all = 30
	s := newStreamed(t, all, 300*time.Millisecond)
	s.hurried, s.every = true, 50*time.Millisecond
	testenv.Eventually(t, func() bool {
		got := s.open("a")
		kind := got.Get("Content-Type")
		assert.False(t, kind != "" && (kind != "text/event-stream" || got.Get("X-Accel-Buffering") != "no"), got.Header)
		return len(events(got, all+1)) == all
	}, "all events of a stream")
	s.count(0)
}

func TestStream_Bounded(t *testing.T) {
	t.Parallel()
	s := newStreamed(t, 0)
	s.each, s.max = 2, 3
	for _, session := range []string{"a", "a", "b"} {
		names := events(s.open(session), 1)
		require.True(t, len(names) == 1 && names[0] == "now", "%s: %v", session, names)
	}
	for _, session := range []string{"a", "c"} {
		names := events(s.open(session), 9)
		assert.True(t, len(names) == 1 && names[0] == "full", "%s: %v", session, names)
	}
	s.count(3)
}

func TestStream_EndsWhenTheBrowserLeavesAndWhenTheInstanceStops(t *testing.T) {
	t.Parallel()
	s := newStreamed(t, 0)
	left, stays := s.open("a"), s.open("b")
	events(left, 2)
	s.count(2)
	_ = left.body.Close()
	s.count(1)
	s.stop()
	s.stop()
	events(stays, 1_000_000) // until the stream ends
	s.count(0)
}

func TestStream_LastsABoundedTime(t *testing.T) {
	t.Parallel()
	s := newStreamed(t, 0)
	s.last = 100 * time.Millisecond
	events(s.open("a"), 1_000_000)
	s.count(0)
}

func TestWrite_LinesOfAnEvent(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	require.NoError(t, write(http.NewResponseController(w), w, event{"now", "<p>1</p>\r\n\n<b>x</b>"}))
	want := "retry: 2000\nevent: now\ndata: <p>1</p>\ndata: \ndata: <b>x</b>\n\n"
	assert.True(t, w.Body.String() == want, "%q, want %q", w.Body, want)
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn chan net.Conn
	end  chan struct{}
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}

func (l oneConn) Close() error   { return nil }
func (l oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// A browser that reads nothing loses its stream, and others can take its place.
func TestStream_BrowserDoesNotRead_Ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStreams()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			large := event{"now", strings.Repeat("x", 1<<20)}
			s.send(w, r, "a", func(context.Context) (event, bool) { return large, false })
		}), ReadHeaderTimeout: time.Second}
		l := oneConn{make(chan net.Conn, 1), make(chan struct{})}
		browser, ours := net.Pipe()
		defer browser.Close()
		l.conn <- ours
		go func() { _ = server.Serve(l) }()
		defer close(l.end)
		_, err := io.WriteString(browser, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		time.Sleep(streamWrite - time.Second)
		open := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.all
		}
		assert.Equal(t, 1, open(), "it may read slowly")
		time.Sleep(2 * time.Second)
		assert.Zero(t, open())
	})
}
