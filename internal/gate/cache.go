package gate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/lane"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

const (
	// DefaultFreshFor is how old a copy may be that answers a check by default. Copies are replaced within milliseconds of
	// each COMMIT; the age only counts when the instance that committed died before it published. 30 s of such an error
	// against one read of PostgreSQL per 30 s, instance and idle balance.
	DefaultFreshFor = 30 * time.Second

	// DefaultKeepFor is how long Redis keeps the copy of a balance that nobody touches: as long as it can still be the
	// degraded answer of an outage of PostgreSQL on the day after.
	DefaultKeepFor = 24 * time.Hour

	// DefaultKnownMax bounds the copies in this process: 50,000 are about 20 MB.
	DefaultKnownMax = 50_000

	// pendingMax bounds the copies that wait while Redis is away: about 25 MB. What does not fit is dropped and counted.
	pendingMax = 65_536

	// publishMax is what one flush sends in one pipeline: four script calls.
	publishMax = 4 * redisCallMax

	// publishGap is the rest between two flushes. An idle cache publishes at once; a busy one sends at most 200 flushes per
	// second, whatever the rate of debits, and other instances see a balance at most this much later.
	publishGap = 5 * time.Millisecond

	// awayFor is how long Redis is left alone after a failure, so that an outage costs the occasional request one timeout
	// and the others nothing.
	awayFor = 500 * time.Millisecond

	// redisBudget bounds one round trip of the cache. The client's own timeouts are 100 ms for reading; waiting for more
	// than one of them helps no check.
	redisBudget = 120 * time.Millisecond

	// readsQueued and readsBatch bound the read lane: more callers than these go to PostgreSQL, which has a bound of its own.
	readsQueued = 4096
	readsBatch  = redisCallMax
)

// CacheConfig says how balances are cached. The zero value is valid.
type CacheConfig struct {
	// FreshFor bounds the age of a copy that answers a check which names no bound; 0 is DefaultFreshFor.
	FreshFor time.Duration

	// KeepFor bounds the life of a copy in Redis; it ends earlier at the balance's next event. 0 is DefaultKeepFor.
	KeepFor time.Duration

	// KnownMax bounds the copies this process remembers, the least recently used go first; 0 is DefaultKnownMax. In local
	// mode they are the cache; with Redis they are what degraded answers come from.
	KnownMax int

	Log         *slog.Logger          // nil discards
	Metrics     prometheus.Registerer // nil: not registered
	LaneMetrics *lane.Metrics         // nil: not measured
	ScriptStats *ratelimit.Metrics    // nil: not measured
	Now         func() time.Time      // nil is time.Now; compared with PostgreSQL's clock, so hosts keep time by NTP
}

// BalanceCache keeps copies of balances for checks. Make it with NewBalanceCache, hand Publish to the ledger, Start it, and
// Stop it after the ledger.
type BalanceCache struct {
	cfg     CacheConfig
	redis   *redisCopies // nil in local mode
	known   *knownCopies
	pending *pendingCopies
	metrics *cacheMetrics

	reads *lane.Lane[[]balanceKey, readAnswer]
	wake  chan struct{} // holds one token: there may be something to publish
	stop  chan struct{}
	ended chan struct{} // closed when the publisher's goroutine is gone
	once  sync.Once

	mu        sync.Mutex
	started   bool
	awayUntil time.Time // zero: Redis answers
}

type readAnswer struct {
	copies []*ledger.BalanceCopy
	err    error
}

func newBalanceCache(cfg CacheConfig) *BalanceCache {
	if cfg.FreshFor <= 0 {
		cfg.FreshFor = DefaultFreshFor
	}
	if cfg.KeepFor <= 0 {
		cfg.KeepFor = DefaultKeepFor
	}
	if cfg.KnownMax <= 0 {
		cfg.KnownMax = DefaultKnownMax
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &BalanceCache{
		cfg: cfg, known: newKnownCopies(cfg.KnownMax), pending: newPendingCopies(pendingMax),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	c.metrics = newCacheMetrics(cfg.Metrics, c.pending)
	return c
}

// Start begins publishing and reading. Publish may be called before.
func (c *BalanceCache) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started || c.redis == nil {
		return
	}
	c.started = true
	c.reads = lane.New(lane.Config{
		Name: "balance_reads", MaxQueue: readsQueued, MaxBatch: readsBatch, Metrics: c.cfg.LaneMetrics, Log: c.cfg.Log,
	}, func(keys []balanceKey) int { return len(keys) }, c.readBatch)
	go c.publishLoop()
}

// Stop publishes what waits and ends the cache's goroutines. It returns an error if copies could not be published within
// ctx; those are lost to the cache and to nothing else. Later calls do nothing.
func (c *BalanceCache) Stop(ctx context.Context) error {
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
		<-c.ended // within redisBudget: the loop waits for nothing else
		if err = c.flush(ctx); err != nil {
			err = fmt.Errorf("publish the last %d balances: %w", c.pending.len(), err)
		}
		if stopErr := c.reads.Stop(ctx); err == nil {
			err = stopErr
		}
	})
	return err
}

// Publish takes the balances of a commit, or of a read of PostgreSQL. It returns at once: they are remembered here, and on
// their way to Redis soon. The copies must not change afterwards.
func (c *BalanceCache) Publish(copies []ledger.BalanceCopy) {
	refs := make([]*ledger.BalanceCopy, len(copies))
	for i := range copies {
		refs[i] = &copies[i]
	}
	c.known.put(refs)
	if c.redis == nil {
		return
	}
	c.pending.add(refs)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// found is what the cache knows of a balance.
type found struct {
	copy *ledger.BalanceCopy // nil: nothing

	// shared says that what other instances published was seen too, or that there are none.
	shared bool
}

// get looks keys up for a check that tolerates maxStale. It never fails: what Redis cannot say is left to what this process
// knows.
func (c *BalanceCache) get(ctx context.Context, keys []balanceKey, maxStale *time.Duration) ([]found, Source) {
	if c.redis == nil {
		return c.known.merge(keys, nil, true), SourceLocal
	}
	// Who wants PostgreSQL's answer needs copies for a degraded one only, and for that this process's will do.
	if maxStale == nil || *maxStale > 0 {
		if copies, ok := c.read(ctx, keys); ok {
			return c.known.merge(keys, copies, false), SourceCache
		}
	}
	return c.known.merge(keys, nil, false), SourceLocal
}

func (c *BalanceCache) read(ctx context.Context, keys []balanceKey) (copies []*ledger.BalanceCopy, ok bool) {
	if c.reads == nil || c.isAway() {
		return nil, false
	}
	answer, err := c.reads.Do(ctx, keys)
	if err != nil || answer.err != nil {
		return nil, false
	}
	return answer.copies, true
}

// readBatch reads the keys of all requests of a batch in one round trip, each key once: a hot tenant's is in most of them.
func (c *BalanceCache) readBatch(ctx context.Context, batch [][]balanceKey) []readAnswer {
	answers := make([]readAnswer, len(batch))
	place := make(map[balanceKey]int, len(batch)) // in keys
	keys := make([]balanceKey, 0, len(batch))
	asked := 0
	for _, part := range batch {
		asked += len(part)
		for _, key := range part {
			if _, seen := place[key]; !seen {
				place[key] = len(keys)
				keys = append(keys, key)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, redisBudget)
	defer cancel()
	read, err := c.redis.get(ctx, keys)
	c.noteRedis(err)
	copies := make([]*ledger.BalanceCopy, 0, asked)
	for i, part := range batch {
		if err != nil {
			answers[i].err = err
			continue
		}
		from := len(copies)
		for _, key := range part {
			copies = append(copies, read[place[key]])
		}
		answers[i].copies = copies[from:len(copies):len(copies)]
	}
	return answers
}

// fresh says whether f may answer a check that tolerates maxStale (nil: the default).
func (c *BalanceCache) fresh(f found, maxStale *time.Duration) bool {
	if !c.usable(f) {
		return false
	}
	age := c.cfg.Now().Sub(f.copy.AsOf)
	if maxStale != nil {
		return *maxStale > 0 && age <= *maxStale
	}
	return f.shared && age <= c.cfg.FreshFor
}

// usable says whether there is a copy and nothing was due since that would have changed the balance without a request. An
// older one answers nothing, not even degraded: the period it speaks of may be over.
func (c *BalanceCache) usable(f found) bool {
	return f.copy != nil && (f.copy.ValidUntil.IsZero() || c.cfg.Now().Before(f.copy.ValidUntil))
}

func (c *BalanceCache) isAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.awayUntil.IsZero() && c.cfg.Now().Before(c.awayUntil)
}

// noteRedis keeps the state of the connection from the outcome of a call, and logs when it changes.
func (c *BalanceCache) noteRedis(err error) {
	c.mu.Lock()
	was := !c.awayUntil.IsZero()
	c.awayUntil = time.Time{}
	if err != nil {
		c.awayUntil = c.cfg.Now().Add(awayFor)
	}
	c.mu.Unlock()
	switch {
	case err != nil && !was:
		c.cfg.Log.Warn("balance cache: redis is away, checks read postgresql", "error", err)
	case err == nil && was:
		c.cfg.Log.Info("balance cache: redis is back")
	}
}
