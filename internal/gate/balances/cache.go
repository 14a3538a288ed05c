package balances

import (
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
	// defaultKeepFor is the default of Config.KeepFor. An idle balance's copy can still answer checks, degraded, if
	// PostgreSQL fails on the next day.
	defaultKeepFor = 24 * time.Hour

	// defaultLocalMax is the default of Config.LocalMax: 50,000 copies take about 7 MB.
	defaultLocalMax = 50_000

	// pendingMax bounds the copies that wait while Redis is away: about 25 MB. Further copies are dropped and
	// counted.
	pendingMax = 65_536

	// redisBudget bounds one round trip of the cache. The client's own read timeout is 100 ms.
	redisBudget = 120 * time.Millisecond
)

// Config configures a Cache. The zero value is valid.
type Config struct {
	// FreshFor is Policy.FreshFor; 0 means 30 s.
	FreshFor time.Duration

	// KeepFor bounds the lifetime of a copy in Redis. A copy ends earlier at its balance's next event. 0 means 24 h.
	KeepFor time.Duration

	// LocalMax bounds the copies in this process (it drops the least recently used copies first), and the balances
	// that it announces one by one. 0 means 50,000. In local mode there are no other copies. With Redis, the local
	// copies answer checks while Redis is away.
	LocalMax int

	// Clock is the ledger's clock: copies carry its instants. nil: the system's.
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

	wake  chan struct{} // one token: there may be something to publish
	stop  chan struct{}
	ended chan struct{} // closed when the publisher has ended
	once  sync.Once

	// parked has the copies that a part of Redis did not take. Other copies do not wait for parked copies.
	// parkedUntil is when the parked copies are sent again. Only the publisher uses both fields, and Stop after the
	// publisher has ended.
	parked      *pendingCopies
	parkedUntil time.Time

	exchangeDue time.Time // the next exchange after a failed exchange; only the publisher uses it

	mu      sync.Mutex
	started bool
	away    bool // the last flush failed, or some copies are parked
}

// New makes a cache that shares copies through Redis. A nil store means local mode: this process must then be the
// only instance, because no other instance sees its copies.
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
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
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
// fails lastTries times in a row. Then only copies are lost: the ledger has the balances. Later calls do nothing.
func (c *Cache) Stop(ctx context.Context) error {
	var err error
	c.once.Do(func() {
		c.mu.Lock()
		started := c.started
		c.started = true // a Start after Stop must start nothing
		c.mu.Unlock()
		if !started {
			return
		}
		close(c.stop)
		<-c.ended // this is soon: a sync lasts at most twice syncFor and redisBudget
		if err = c.flushLast(ctx); err != nil {
			err = fmt.Errorf("publish the last %d balances: %w", c.pending.len()+c.parked.len(), err)
		}
	})
	return err
}

// Publish takes the balances of a commit or of a read of PostgreSQL. It keeps the balances that are newer than its
// local copies. It passes the balances that checks of any instance read to the publisher, and does not wait. The
// caller must not change copies afterwards.
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
	default: // it is already awake
	}
}
