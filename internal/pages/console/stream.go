package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// streamEvery is the time between two events of a stream. The events also keep the connection open: many proxies
	// close a silent connection after 30 or 60 seconds.
	streamEvery = 5 * time.Second

	// streamFor is the maximum time of a stream. After it, the browser opens the next stream, perhaps at another
	// instance.
	streamFor = 10 * time.Minute

	// streamRetry is the time that the browser waits before it opens the next stream.
	streamRetry = 2 * time.Second

	// streamsMax is the maximum number of streams of one instance, and streamsPerSession of one session. A browser
	// opens only six connections to a host, and needs some of them for pages.
	streamsMax        = 64
	streamsPerSession = 4

	// streamWrite is the maximum time of one write. If a browser reads nothing for this time, the stream ends.
	streamWrite = 10 * time.Second
)

// streams counts the open streams of an instance.
type streams struct {
	every, last time.Duration // streamEvery and streamFor, except in tests
	max, each   int
	stopping    chan struct{}
	stop        func() // closes stopping

	mu   sync.Mutex
	open map[string]int // number of streams by session
	all  int
}

func newStreams() *streams {
	s := &streams{every: streamEvery, last: streamFor, max: streamsMax, each: streamsPerSession, stopping: make(chan struct{}), open: map[string]int{}}
	s.stop = sync.OnceFunc(func() { close(s.stopping) })
	return s
}

// take counts a new stream of a session. It returns false if the instance or the session has too many streams.
func (s *streams) take(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.max || s.open[session] >= s.each {
		return false
	}
	s.all++
	s.open[session]++
	return true
}

func (s *streams) leave(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.open[session]--; s.open[session] == 0 {
		delete(s.open, session)
	}
}

// event is one server-sent event of a stream.
type event struct{ name, data string }

// send calls the function `next` at once, and then again every streamEvery. It sends each result. The stream ends if
// `next` returns true for `last`, if the browser closes the connection, if the instance stops, or after streamFor. If
// there are too many streams, send sends only the event full.
func (s *streams) send(w http.ResponseWriter, r *http.Request, session string, next func(context.Context) (e event, last bool)) {
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // the time limit for reading a request must not end a stream
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // makes nginx send events without buffering
	w.WriteHeader(http.StatusOK)
	if !s.take(session) {
		_ = write(out, w, event{name: "full"})
		return
	}
	defer s.leave(session)
	tick, end := time.NewTicker(s.every), time.NewTimer(s.last)
	defer tick.Stop()
	defer end.Stop()
	for {
		e, last := next(r.Context())
		if err := write(out, w, e); err != nil || last {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.stopping:
			return
		case <-end.C:
			return
		case <-tick.C:
		}
	}
}

// write sends one event to the browser.
func write(out *http.ResponseController, w http.ResponseWriter, e event) error {
	_ = out.SetWriteDeadline(time.Now().Add(streamWrite)) // an error means that the server has no deadlines
	var b strings.Builder
	b.WriteString("retry: " + strconv.FormatInt(streamRetry.Milliseconds(), 10) + "\nevent: " + e.name + "\n")
	for line := range strings.Lines(e.data + "\n") {
		b.WriteString("data: " + strings.TrimRight(line, "\r\n") + "\n")
	}
	b.WriteString("\n")
	if _, err := w.Write([]byte(b.String())); err != nil {
		return err
	}
	return out.Flush()
}
