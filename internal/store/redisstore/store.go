package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"

	"github.com/quotasvc/quotasvc/internal/kit/lane"
)

const (
	// DefaultBudget is the longest time that a request may take: half of it in the queue and half in Redis. A request
	// that is still queued after half of the budget would probably be answered too late.
	DefaultBudget = 120 * time.Millisecond

	// DefaultMaxQueue bounds the waiting requests per lane. A lane decides over 150,000 requests of one tenant per
	// second, so it serves a full queue within half of the budget. It decides 30,000 requests of many tenants per
	// second. Then requests wait longer than half of the budget, and fail, before the queue is full.
	DefaultMaxQueue = 2048

	// loadTimeout bounds loading the scripts into a new node of a cluster.
	loadTimeout = time.Second
)

// Config is a store's configuration. The zero value is valid.
type Config struct {
	// Budget is the longest time that a request may take; 0 is DefaultBudget.
	Budget time.Duration
	// MaxQueue bounds the requests that wait per lane; 0 is DefaultMaxQueue. A request beyond MaxQueue fails with
	// ErrAway.
	MaxQueue int
	// WatchMax bounds the keys whose changes Redis announces. It also bounds the held values. 0 is DefaultWatchMax.
	WatchMax int
	// Log gets the lines of the store and of its lanes, for example about a node that rejects the scripts. If it is
	// nil, these lines are discarded.
	Log *slog.Logger
	// Metrics and LaneMetrics may be nil.
	Metrics     *Metrics
	LaneMetrics *lane.Metrics
	// Login supplies the user and the password for new connections. If it is nil, those of the URL are used.
	Login *Login
	// Tracer creates spans of batches, Traces creates spans of commands. Without them there are no such spans.
	Tracer trace.Tracer
	Traces trace.TracerProvider
	// Now is the clock of the breaker; nil is time.Now.
	Now func() time.Time
}

func (cfg Config) withDefaults() Config {
	if cfg.Budget <= 0 {
		cfg.Budget = DefaultBudget
	}
	if cfg.MaxQueue <= 0 {
		cfg.MaxQueue = DefaultMaxQueue
	}
	if cfg.WatchMax <= 0 {
		cfg.WatchMax = DefaultWatchMax
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return cfg
}

// Store sends requests to the shards of one Redis. Create it with Open, or with New for an existing client. It is
// safe for concurrent use.
type Store struct {
	cfg     Config
	client  redis.UniversalClient
	cluster *redis.ClusterClient // nil unless Redis is a cluster
	metrics *Metrics
	clock   ticker
	seed    maphash.Seed
	reads   *Lanes[struct{}, struct{}]
	watch   *Watch // nil: no value counts as held

	changed atomic.Pointer[func(shard string, err error, away int)]
	away    atomic.Int32 // shards whose breaker is open

	// first is the only shard if Redis is no cluster. On a cluster it is used until the masters are known.
	first    *shard
	mapped   atomic.Bool  // the cluster client knows the masters
	reloaded atomic.Int64 // when the map of the cluster was last read early, in µs
	swept    atomic.Int64 // when the shards were last compared with the map, in µs

	newNodes chan *redis.Client
	ended    chan struct{} // closed when the goroutine that loads scripts has ended
	stopping context.Context
	cancel   context.CancelFunc

	mu      sync.RWMutex // guards the fields below
	byNode  map[string]*shard
	scripts []*Script
	kinds   []func(*shard) stopper // each function creates a shard's lanes of one kind
	dropped sync.WaitGroup         // shards that are being stopped
}

// Open creates a store for a URL; see NewClient. It does not connect. Close the store after Stop.
func Open(url string, cfg Config) (*Store, error) {
	client, err := newClient(url, cfg.Login)
	if err != nil {
		return nil, err
	}
	return New(client, cfg), nil
}

// New creates a store on client. client must have timeouts and respect contexts, as the clients of NewClient do. New
// starts goroutines, which Stop ends.
func New(client redis.UniversalClient, cfg Config) *Store {
	cfg = cfg.withDefaults()
	if cfg.Traces != nil { // without arguments: they are binary, and may contain keys of tenants' balances
		_ = redisotel.InstrumentTracing(client, redisotel.WithTracerProvider(cfg.Traces), redisotel.WithDBStatement(false)) // fails for unknown clients only
	}
	s := &Store{
		cfg: cfg, client: client, metrics: cfg.Metrics, clock: newTicker(cfg.Now), seed: maphash.MakeSeed(),
		byNode: make(map[string]*shard), ended: make(chan struct{}),
	}
	s.stopping, s.cancel = context.WithCancel(context.Background())
	var isCluster bool
	if s.cluster, isCluster = client.(*redis.ClusterClient); isCluster {
		s.first = s.newShard("cluster")
		s.newNodes = make(chan *redis.Client, nodesQueued)
		s.cluster.OnNewNode(func(node *redis.Client) { // called under the client's lock
			select {
			case s.newNodes <- node:
			default:
			}
		})
		go s.loadNewNodes()
	} else {
		s.first = s.newShard("redis")
		close(s.ended)
	}
	s.reads = newReadLanes(s)
	s.watch = newWatch(s, client)
	return s
}

// Watch returns the watch on values that this process has read. It returns nil on a cluster.
func (s *Store) Watch() *Watch { return s.watch }

// Start finds the masters of a cluster and loads the scripts. The caller may ignore its error. After an error, the
// first requests find the masters, and the first calls send their script in full.
func (s *Store) Start(ctx context.Context) error {
	errs := []error{s.learn(ctx, "")}
	for _, script := range s.allScripts() {
		errs = append(errs, script.load(ctx, s.client))
	}
	return errors.Join(errs...)
}

// Stop refuses new requests, sends the queued requests and ends the goroutines. If ctx ends first, the requests in
// Redis are cancelled, and it is unknown whether they ran. Stop does not close the connections, so Script.Run still
// works.
func (s *Store) Stop(ctx context.Context) error {
	errs := s.stopShards(ctx)
	s.mu.Lock()
	s.cancel() // from here on no shard is added or dropped
	s.mu.Unlock()
	<-s.ended // within the client's timeouts
	if s.watch != nil {
		s.watch.stop()
	}
	errs = append(errs, s.stopShards(ctx)...) // shards added in between
	s.dropped.Wait()
	return errors.Join(errs...)
}

func (s *Store) stopShards(ctx context.Context) (errs []error) {
	for _, sh := range s.all() {
		errs = append(errs, sh.stop(ctx))
	}
	return errs
}

// Close closes the connections.
func (s *Store) Close() error { return s.client.Close() }

// Ping returns nil if Redis answers. On a cluster every master must answer.
func (s *Store) Ping(ctx context.Context) error {
	if s.cluster == nil {
		return s.client.Ping(ctx).Err()
	}
	return s.cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error { return master.Ping(ctx).Err() })
}

// IsCluster reports whether Redis is a cluster. On a cluster, the keys of one command or script call must have the
// same hash tag.
func (s *Store) IsCluster() bool { return s.cluster != nil }

// Budget returns the longest time that a request may take.
func (s *Store) Budget() time.Duration { return s.cfg.Budget }

// AnyAway reports whether the breaker of any shard is open.
func (s *Store) AnyAway() bool { return s.away.Load() > 0 }

// IsAway reports whether the breaker of the shard that has key is open.
func (s *Store) IsAway(key string) bool { return s.shardOf(key).breaker.isOpen() }

// IsReturning reports whether the next request on key finds out whether its shard is back, or the shard came back less
// than `within` ago. Other processes may not know yet that it is back.
func (s *Store) IsReturning(key string, within time.Duration) bool {
	return s.shardOf(key).breaker.returning(s.cfg.Now(), within)
}

// Now returns an estimate of the time by the clock of the shard that has key, in µs. It is based on earlier replies.
func (s *Store) Now(key string) int64 { return s.clock.micros() + s.shardOf(key).ahead.Load() }

// OnChange sets a function that is called when a breaker opens or closes. err is the reason why it opened, or nil
// when it closes. away is the number of open breakers.
func (s *Store) OnChange(f func(shard string, err error, away int)) { s.changed.Store(&f) }

// QueueDeadline returns the latest time at which a request that begins now may leave the queue. This is after half of
// the budget, because the other half is for Redis. If the deadline of ctx is earlier, it returns that deadline. While a
// request is queued, Do ignores the cancellation of ctx, because this time is short.
func (s *Store) QueueDeadline(ctx context.Context) time.Time {
	deadline := time.Now().Add(s.cfg.Budget / 2) // not cfg.Now: this bounds a real wait, as a context's deadline does
	if own, ok := ctx.Deadline(); ok && own.Before(deadline) {
		return own
	}
	return deadline
}

// Delete deletes keys of one slot, and reports whether any of them existed. Its errors match ErrAway. After an error
// it is unknown whether the keys were deleted.
func (s *Store) Delete(ctx context.Context, keys ...string) (existed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Budget)
	defer cancel()
	n, err := s.client.Del(ctx, keys...).Result()
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrAway, err)
	}
	return n > 0, nil
}

// PutNew stores text under a key for ttl and returns true. If the key already exists, it returns false and the text
// that is stored there. Its errors match ErrAway. After an error it is unknown whether the text was stored.
func (s *Store) PutNew(ctx context.Context, key, text string, ttl time.Duration) (held string, isNew bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Budget)
	defer cancel()
	pipe := s.client.Pipeline()
	set, get := pipe.SetNX(ctx, key, text, ttl), pipe.Get(ctx, key) // a single SET with NX and GET needs Redis 7
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return "", false, fmt.Errorf("%w: %w", ErrAway, err)
	}
	return get.Val(), set.Val(), nil
}

// Put stores text under a key for ttl. Its errors match ErrAway. After an error it is unknown whether the text was
// stored.
func (s *Store) Put(ctx context.Context, key, text string, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Budget)
	defer cancel()
	if err := s.client.Set(ctx, key, text, ttl).Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return nil
}

// noteShard is called by the breaker of a shard each time it opens or closes.
func (s *Store) noteShard(sh *shard, open bool, err error) {
	value, delta := 0.0, int32(-1)
	if open {
		value, delta = 1, 1
	}
	s.metrics.breakerOpen.WithLabelValues(sh.name).Set(value)
	away := s.away.Add(delta)
	if changed := s.changed.Load(); changed != nil {
		(*changed)(sh.name, err, int(away))
	}
}

// ticker is a clock in microseconds. It does not jump when the wall clock is set.
type ticker struct {
	now   func() time.Time
	start time.Time
}

func newTicker(now func() time.Time) ticker { return ticker{now: now, start: now()} }

func (t ticker) micros() int64 {
	return t.start.UnixMicro() + t.now().Sub(t.start).Microseconds()
}
