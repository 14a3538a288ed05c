package gate

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

	// DefaultKnownMax bounds the copies in this process: 50,000 are about 24 MB.
	DefaultKnownMax = 50_000

	// pendingMax bounds the copies that wait while Redis is away: about 25 MB. What does not fit is dropped and counted.
	pendingMax = 65_536

	// publishMax is what one flush sends in one pipeline: four script calls.
	publishMax = 4 * redisCallMax

	// publishGap is the rest between two flushes. An idle cache publishes at once; a busy one sends at most 200 flushes per
	// second, whatever the rate of debits, and other instances see a balance at most this much later.
	publishGap = 5 * time.Millisecond

	// awayFor is how long the publisher leaves Redis alone after a failure.
	awayFor = 500 * time.Millisecond

	// awayFreshFor is how old a copy may be that answers a check while Redis is away: without it every check would be a read of
	// PostgreSQL, at the very time when it is all that is left. A second of an error that the answer is marked with, against
	// one read per second, instance and balance in use.
	awayFreshFor = time.Second

	// redisBudget bounds one round trip of the cache. The client's own timeouts are 100 ms for reading; waiting for more
	// than one of them helps no check.
	redisBudget = 120 * time.Millisecond
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

	wake  chan struct{} // holds one token: there may be something to publish
	stop  chan struct{}
	ended chan struct{} // closed when the publisher's goroutine is gone
	once  sync.Once

	mu      sync.Mutex
	started bool
	away    bool // the last flush failed
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

// Start begins publishing. Publish may be called before.
func (c *BalanceCache) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started || c.redis == nil {
		return
	}
	c.started = true
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

// stored are the names under which Redis keeps keys, if a check that tolerates maxStale has a use for it: who wants
// PostgreSQL's answer needs copies for a degraded one only, and for that this process's will do.
func (c *BalanceCache) stored(keys []balanceKey, maxStale *time.Duration) []string {
	if c.redis == nil || maxStale != nil && *maxStale <= 0 {
		return nil
	}
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].redisKey()
	}
	return names
}

// recall appends to out what is known of keys. texts are what Redis holds under their names; nil says that it was not asked or
// did not answer.
func (c *BalanceCache) recall(out []found, keys []balanceKey, texts []string) ([]found, Source) {
	source := SourceCache
	if texts == nil {
		source = SourceLocal
	}
	return c.known.merge(out, keys, texts, c.redis == nil), source
}

// fresh says whether f may answer a check now that tolerates maxStale (nil: the default).
func (c *BalanceCache) fresh(f found, maxStale *time.Duration, now time.Time) bool {
	if !usable(f, now) {
		return false
	}
	age := now.Sub(f.copy.AsOf)
	if maxStale != nil {
		return *maxStale > 0 && age <= *maxStale
	}
	return f.shared && age <= c.cfg.FreshFor
}

// aging says whether f, which is fresh, should be read again before it is not: when it has reached between three quarters and 19/20
// of FreshFor, each copy at a point of its own. What was read together, after a start for example, is then not due together.
func (c *BalanceCache) aging(f found, now time.Time) bool {
	least, spread := c.cfg.FreshFor*3/4, c.cfg.FreshFor/5
	part := uint64(f.copy.AsOf.UnixMicro()) * 0x9e3779b97f4a7c15 >> 54 // of 1024: neighbours in time are far apart in this
	return now.Sub(f.copy.AsOf) > least+spread*time.Duration(part)/1024
}

// lonely says whether copies are complete and young enough, and lack only that Redis tells what other instances did since:
// it is away, or has lost them.
func lonely(copies []found, changedAt time.Time, maxAge time.Duration, now time.Time) bool {
	return !slices.ContainsFunc(copies, func(f found) bool {
		return f.copy == nil || f.copy.Beyond || f.copy.AsOf.Before(changedAt) || now.Sub(f.copy.AsOf) > maxAge
	})
}

// usable says whether there is a copy and nothing was due since that would have changed the balance without a request. An
// older one answers nothing, not even degraded: the period it speaks of may be over.
func usable(f found, now time.Time) bool {
	return f.copy != nil && (f.copy.ValidUntil.IsZero() || now.Before(f.copy.ValidUntil))
}

// noteRedis keeps the state of the connection from the outcome of a flush, and logs when it changes.
func (c *BalanceCache) noteRedis(err error) {
	c.mu.Lock()
	was := c.away
	c.away = err != nil
	c.mu.Unlock()
	switch {
	case err != nil && !was:
		c.cfg.Log.Warn("balance cache: redis is away, balances wait to be published", "error", err)
	case err == nil && was:
		c.cfg.Log.Info("balance cache: redis is back")
	}
}
