package pg

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// fleet is two instances of the ledger on one database, each behind a proxy. While disturb runs, answers to COMMIT
// are lost, connections break, and the instances' own clocks are wrong. Instances are killed as with SIGKILL. The
// callers get no answer, every connection is cut, and a new instance starts without any state.
type fleet struct {
	url     string
	mu      sync.Mutex
	members [2]*member
	running sync.WaitGroup // the goroutines that stop killed members
	asked   chan struct{}  // receives a value for each call of ask, unless it is full
	counts  struct{ kills, cuts, lost, clocks int64 }
}

// member is an instance of the ledger, with its proxy and its wrong clock.
type member struct {
	*Ledger
	proxy  *proxy
	killed chan struct{}
	wrong  *atomic.Int64 // its own clock minus PostgreSQL's, in nanoseconds
}

// asksPerFault is the average number of calls of ask between two faults. A program of five rounds has about a hundred
// calls.
const asksPerFault = 6

// wrongs are differences between an instance's clock and PostgreSQL's. With each of these differences PostgreSQL's
// clock decides, so the models know the instant of every decision. Either the difference is less than
// clock.SkewMaxDefault, or the instance's clock is ahead: then the earlier clock decides.
var wrongs = []time.Duration{0, 0, -25 * time.Second, 25 * time.Second, time.Minute, 240 * time.Hour, 400 * 24 * time.Hour}

func startFleet(t *testing.T, url string) *fleet {
	t.Helper()
	f := &fleet{url: url, asked: make(chan struct{}, 100)}
	for i := range f.members {
		m, err := f.open()
		require.NoError(t, err)
		f.members[i] = m
	}
	t.Cleanup(func() {
		for _, m := range f.members {
			assert.NoError(t, m.stop(), "stop instance")
		}
		f.running.Wait()
	})
	return f
}

// open starts an instance. It tries again while PostgreSQL does not answer in time, because the machine may be busy.
func (f *fleet) open() (m *member, err error) {
	for begun := time.Now(); time.Since(begun) < testenv.Patience; {
		if m, err = f.tryOpen(); errcode.Of(err) != errcode.Unavailable {
			break
		}
	}
	return m, err
}

func (f *fleet) tryOpen() (*member, error) {
	p, through, err := openProxy(f.url)
	if err != nil {
		return nil, err
	}
	// There are only two connections for reads, so that a lost connection makes other reads wait.
	cfg := Config{DatabaseURL: through, Readers: 2, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()}
	wrong := new(atomic.Int64)
	wrong.Store(int64(wrongs[rand.IntN(len(wrongs))]))
	clockOf(wrong, 0)(&cfg)
	l, err := Open(context.Background(), cfg)
	if err == nil {
		err = l.Start(context.Background())
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("open instance: %w", err)
	}
	return &member{Ledger: l, proxy: p, killed: make(chan struct{}), wrong: wrong}, nil
}

func (m *member) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	err := m.Stop(ctx)
	m.proxy.close()
	return err
}

func (f *fleet) member(n int) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[n%len(f.members)]
}

// ask calls the function `do` on member n. answered is false if the member was killed before the function returned.
// Then the function may still run; `late` waits for it.
func ask[V any](f *fleet, late *sync.WaitGroup, n int, do func(*Ledger) V) (answer V, answered bool) {
	select {
	case f.asked <- struct{}{}:
	default:
	}
	m := f.member(n)
	told := make(chan V, 1)
	late.Go(func() { told <- do(m.Ledger) })
	select {
	case answer = <-told:
	case <-m.killed:
	}
	select {
	case <-m.killed:
		return answer, false
	default:
		return answer, true
	}
}

// kill ends member n and replaces it by a new instance.
func (f *fleet) kill(n int) error {
	old := f.member(n)
	close(old.killed)
	old.proxy.close()
	f.running.Go(func() { _ = old.stop() })
	m, err := f.open()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members[n] = m
	f.counts.kills++
	f.counts.lost += old.proxy.lost.Load()
	return nil
}

// disturb starts a goroutine that causes faults until stop is called. Between two faults there are asksPerFault calls
// of ask on average. stop returns an error if a new instance could not start.
func (f *fleet) disturb() (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for {
			for range asksPerFault/2 + rand.IntN(asksPerFault) {
				select {
				case <-f.asked:
				case <-ctx.Done():
					ended <- nil
					return
				}
			}
			n := rand.IntN(len(f.members))
			switch rand.IntN(9) {
			case 0:
				if err := f.kill(n); err != nil {
					ended <- err
					return
				}
			case 1, 2:
				f.member(n).proxy.cut()
				f.counts.cuts++
			case 3:
				f.member(n).wrong.Store(int64(wrongs[rand.IntN(len(wrongs))]))
				f.counts.clocks++
			default:
				f.member(n).proxy.every.Store([]int64{0, 0, 10, 40, 100}[rand.IntN(5)])
			}
		}
	}()
	return func() error {
		cancel()
		err := <-ended
		for _, m := range f.members {
			m.proxy.every.Store(0)
			f.counts.lost += m.proxy.lost.Load()
		}
		return err
	}
}
