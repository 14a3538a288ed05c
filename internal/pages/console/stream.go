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
	// streamEvery is the time between two events of a stream. The events are also a heartbeat for proxies, which
	// close silent connections after 30 or 60 seconds.
	streamEvery = 5 * time.Second

	// streamFor bounds the time of a stream. The browser then opens the next one, perhaps on another instance.
	streamFor = 10 * time.Minute

	// streamRetry is the browser's pause before it opens the next stream.
	streamRetry = 2 * time.Second

	// streamsMax bounds the streams of an instance. streamsPerSession bounds the streams of a session: a browser has
	// six connections to a host.
	streamsMax        = 64
	streamsPerSession = 4

	// streamWrite bounds the time of one write. A browser that reads nothing for that time counts as gone.
	streamWrite = 10 * time.Second
)

// streams has the open streams of an instance.
type streams struct {
	every, last time.Duration // streamEvery and streamFor, except in tests
	max, each   int
	stopping    chan struct{}
	stop        func() // closes stopping

	mu   sync.Mutex
	open map[string]int // by session
	all  int
}

func newStreams() *streams {
	s := &streams{every: streamEvery, last: streamFor, max: streamsMax, each: streamsPerSession, stopping: make(chan struct{}), open: map[string]int{}}
	s.stop = sync.OnceFunc(func() { close(s.stopping) })
	return s
}

// take counts a new stream of a session. It returns false if there are too many streams.
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

// event is one event of a stream.
type event struct{ name, data string }

// send sends the result of next at once and then every few seconds. It stops if next returns last, if the browser
// leaves, if the instance stops, or if the stream has lasted streamFor. If there are too many streams, it sends only
// the event full.
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

// write sends an event.
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
