package balances

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

const (
	// defaultKeepFor is the default of Config.KeepFor. With it, the copy of an idle balance can still answer checks,
	// marked degraded, if PostgreSQL fails a day later.
	defaultKeepFor = 24 * time.Hour

	// defaultLocalMax is the default of Config.LocalMax: 50,000 copies take about 7 MB.
	defaultLocalMax = 50_000

	// pendingMax is the largest number of copies that wait to be published while Redis is down: about 25 MB. Further
	// copies are dropped and counted.
	pendingMax = 65_536

	// redisBudget is the longest time of one round trip of the cache. The read timeout of the client is 100 ms.
	redisBudget = 120 * time.Millisecond
)

// Config configures a Cache. The zero value is valid.
type Config struct {
	// FreshFor is Policy.FreshFor; 0 means 30 s.
	FreshFor time.Duration

	// KeepFor is the longest lifetime of a copy in Redis. A copy ends earlier if its balance has an earlier event. 0
	// means 24 h.
	KeepFor time.Duration

	// LocalMax is the largest number of copies in this process, which drops the least recently used copies first. It
	// is also the largest number of balances that this process announces separately. 0 means 50,000. In local mode
	// there are no other copies. With Redis, the local copies answer checks while Redis is down.
	LocalMax int

	// Clock is the ledger's clock, whose times the copies contain. nil: the system's clock.
	Clock interface{ Now() time.Time }

	Log     *slog.Logger          // nil discards
	Metrics prometheus.Registerer // nil: not registered
}

// Cache keeps copies of balances. Pass Publish to the ledger as its OnCommit, call Start, and call Stop after the
// ledger has stopped.
type Cache struct {
	cfg     Config
	redis   *redisCopies // nil in local mode
	local   *localCopies
	pending *pendingCopies
	metrics *metrics

	interest *interest

	wake  chan struct{} // capacity 1: copies may wait to be published
	stop  chan struct{}
	ended chan struct{} // closed when the publisher has ended
	once  sync.Once

	// parked contains copies that one master of a Redis cluster did not take. Other copies do not wait for parked
	// copies. The parked copies are sent again at parkedUntil. Only the publisher uses parked and parkedUntil. After
	// the publisher has ended, Stop uses them.
	parked      *pendingCopies
	parkedUntil time.Time

	exchangeDue time.Time // instant of the next exchange after a failed exchange; only the publisher uses it

	mu      sync.Mutex
	started bool
	away    bool // the last flush failed, or some copies are parked
}

// New returns a cache that shares copies through Redis. A nil store means local mode. In local mode this process must
// be the only instance, because no other instance sees its copies.
func New(store *redisstore.Store, cfg Config) *Cache {
	if cfg.FreshFor <= 0 {
		cfg.FreshFor = defaultFreshFor
	}
	if cfg.KeepFor <= 0 {
		cfg.KeepFor = defaultKeepFor
	}
	if cfg.LocalMax <= 0 {
		cfg.LocalMax = defaultLocalMax
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	c := &Cache{
		cfg: cfg, local: newLocalCopies(cfg.LocalMax), pending: newPendingCopies(pendingMax), interest: newInterest(cfg.LocalMax),
		parked: newPendingCopies(pendingMax), wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	c.metrics = newMetrics(cfg.Metrics, c.pending, c.parked)
	if store != nil {
		c.redis = newRedisCopies(store, cfg.KeepFor)
	}
	return c
}

// Policy returns the policy for the copies of this cache.
func (c *Cache) Policy() Policy { return Policy{FreshFor: c.cfg.FreshFor} }

// Start starts the publisher. Publish may be called before Start.
func (c *Cache) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started || c.redis == nil {
		return
	}
	c.started = true
	go c.publishLoop()
}

// Stop publishes the copies that wait and ends the publisher. It returns an error if ctx ends first, or if Redis
// fails lastTries times in a row. After an error only copies are lost, because the ledger has the balances. Later
// calls do nothing.
func (c *Cache) Stop(ctx context.Context) error {
	var err error
	c.once.Do(func() {
		c.mu.Lock()
		started := c.started
		c.started = true // so that Start does nothing after Stop
		c.mu.Unlock()
		if !started {
			return
		}
		close(c.stop)
		<-c.ended // this happens soon: a sync takes at most twice syncFor and redisBudget
		if err = c.flushLast(ctx); err != nil {
			err = fmt.Errorf("publish the last %d balances: %w", c.pending.len()+c.parked.len(), err)
		}
	})
	return err
}

// Publish receives the balances of a commit or of a read of PostgreSQL. It keeps the balances that are newer than its
// local copies. It passes the wanted balances to the publisher. It does not wait. The caller must not change copies
// afterwards.
func (c *Cache) Publish(copies []ledger.BalanceCopy) {
	refs := make([]*ledger.BalanceCopy, len(copies))
	for i := range copies {
		refs[i] = &copies[i]
	}
	c.local.put(refs)
	if c.redis == nil {
		return
	}
	refs, learn := c.interest.choose(refs, time.Now())
	if len(refs) > 0 {
		c.pending.add(refs)
	}
	if len(refs) > 0 || learn {
		c.wakePublisher()
	}
}

// wakePublisher makes the publisher flush soon. It does not wait.
func (c *Cache) wakePublisher() {
	select {
	case c.wake <- struct{}{}:
	default: // a flush is already due
	}
}
