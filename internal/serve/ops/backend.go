package ops

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

const (
	// askTimeout bounds one check of a backend. A healthy backend answers in milliseconds.
	askTimeout = time.Second

	// askEvery is the pause between two checks. So the state that operators and metrics show is at most two seconds
	// old.
	askEvery = time.Second
)

var errNotAsked = errors.New("not asked yet")

// Backend checks periodically whether a server answers. Create it with NewBackend.
type Backend struct {
	name   string
	ask    func(context.Context) error
	found  atomic.Pointer[error]
	cancel context.CancelFunc
	ended  chan struct{}
}

// NewBackend returns a backend. It checks once before it returns, and then every second until Stop. ask must return
// soon after its context ends. It must use a separate connection, so that other users of the server do not change the
// result. The metric is quotasvc_<name>_up.
func NewBackend(ctx context.Context, name string, ask func(context.Context) error, metrics prometheus.Registerer) *Backend {
	b := &Backend{name: name, ask: ask, ended: make(chan struct{})}
	b.found.Store(&errNotAsked)
	metric.Flag(metrics, "quotasvc_"+name+"_up", "Whether "+name+" answered when it was last asked, within a second: 1, else 0.",
		func() bool { return b.state() == nil })
	b.once(ctx)
	running, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	go b.run(running)
	return b
}

// Stop ends the checks.
func (b *Backend) Stop(context.Context) error {
	b.cancel()
	<-b.ended // within askTimeout
	return nil
}

func (b *Backend) run(ctx context.Context) {
	defer close(b.ended)
	backoff.Every(ctx, askEvery, func(time.Time) { b.once(ctx) })
}

// once runs one check and stores its result.
func (b *Backend) once(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := b.ask(limited)
	if ctx.Err() == nil {
		b.found.Store(&err)
	}
}

// state returns nil if the server answered the latest check. Otherwise it returns the error of the check.
func (b *Backend) state() error { return *b.found.Load() }
