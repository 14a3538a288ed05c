package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lane"
	"github.com/quotasvc/quotasvc/lua"
)

const (
	// DefaultBudget is the longest a decision may take, whatever Redis does. Half of it may be spent queueing and half in
	// Redis: a request that is still queued when its half is over might not make it.
	DefaultBudget = 120 * time.Millisecond

	// DefaultLanes is the pipelines a process has under way at a time: while one is in Redis the other is encoded or
	// decoded. More lanes make the batches smaller, and the scripts' fixed cost is what batching saves.
	DefaultLanes = 2

	// DefaultMaxQueue is the requests that may wait per lane. Requests of one tenant are decided at over 150,000/s, so they
	// are served within the queue's half of the budget; where they differ (30,000/s), the budget ends the wait first.
	DefaultMaxQueue = 2048

	// maxBatchCharges is the charges in one pipeline. It bounds a pipeline's time to a few ms, far below the budget.
	maxBatchCharges = 1024

	// corruptLogEvery is how often unreadable buckets are logged: an attacker or a bug may produce thousands per second.
	corruptLogEvery = 10 * time.Second
)

// Config is a limiter's configuration. The zero value is valid.
type Config struct {
	// Budget is the longest a decision may take; 0 is DefaultBudget.
	Budget time.Duration
	// Lanes is the number of pipelines under way at a time; 0 is DefaultLanes.
	Lanes int
	// MaxQueue is the requests that may wait per lane; 0 is DefaultMaxQueue. A request beyond it is decided as if Redis
	// were away.
	MaxQueue int
	// MaxLocalLevels bounds the bucket levels held in the process; 0 is DefaultMaxLocalLevels.
	MaxLocalLevels int
	// Replicas is the number of live replicas, at least 1: what the rules are divided by while Redis is away. It is
	// called per decision then. nil is 1.
	Replicas func() int
	// Log gets one line per change between Redis and local decisions; nil discards them.
	Log *slog.Logger
	// Metrics and LaneMetrics may be nil.
	Metrics     *Metrics
	LaneMetrics *lane.Metrics
	// Now is the clock of local decisions and of the breaker; nil is time.Now. Decisions in Redis use Redis' clock.
	Now func() time.Time

	// redisNow, in tests, is the time in us that scripts use instead of Redis' own.
	redisNow func() int64
}

// Limiter decides requests. Make it with New; it is safe for concurrent use.
type Limiter struct {
	cfg     Config
	client  redis.UniversalClient // nil: local mode
	cluster bool
	script  *Script
	lanes   []*lane.Lane[query, answer]
	seed    maphash.Seed
	breaker *breaker
	levels  *levels
	leases  *leases
	ticker  ticker
	metrics *Metrics

	stopped    atomic.Bool
	corruptLog atomic.Int64 // us of the last line about an unreadable bucket
}

// New makes a limiter on client, or in local mode if client is nil: one process, the same semantics. The client must have
// its timeouts set and respect contexts, as NewClient's do. New starts the lanes' goroutines: end them with Stop.
func New(client redis.UniversalClient, cfg Config) *Limiter {
	cfg = cfg.withDefaults()
	l := &Limiter{
		cfg:     cfg,
		client:  client,
		script:  NewScript("limits", lua.Limits, cfg.Metrics),
		seed:    maphash.MakeSeed(),
		metrics: cfg.Metrics,
		levels:  newLevels(cfg.MaxLocalLevels, cfg.Metrics),
		ticker:  ticker{now: cfg.Now, start: cfg.Now()},
	}
	_, l.cluster = client.(*redis.ClusterClient)
	l.breaker = &breaker{onChange: l.logDegraded}
	l.leases = newLeases(l)
	if client == nil {
		return l
	}
	for range cfg.Lanes {
		l.lanes = append(l.lanes, lane.New(
			lane.Config{
				Name: "limits", MaxQueue: cfg.MaxQueue, MaxBatch: maxBatchCharges,
				Metrics: cfg.LaneMetrics, Log: cfg.Log, Now: cfg.Now,
			},
			func(q query) int { return len(q.charges) },
			l.process,
		))
	}
	return l
}

func (cfg Config) withDefaults() Config {
	if cfg.Budget <= 0 {
		cfg.Budget = DefaultBudget
	}
	if cfg.Lanes <= 0 {
		cfg.Lanes = DefaultLanes
	}
	if cfg.MaxQueue <= 0 {
		cfg.MaxQueue = DefaultMaxQueue
	}
	if cfg.Replicas == nil {
		cfg.Replicas = func() int { return 1 }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.redisNow == nil {
		cfg.redisNow = func() int64 { return 0 }
	}
	return cfg
}

// Start caches the script in Redis. It is optional: an error means that Redis is away or the first calls will send the
// script in full, and the limiter works all the same.
func (l *Limiter) Start(ctx context.Context) error {
	if l.client == nil {
		return nil
	}
	return errors.Join(l.script.Load(ctx, l.client), l.leases.script.Load(ctx, l.client))
}

// Stop refuses new requests, decides the queued ones and ends the lanes. If ctx ends first they are cut off, and what they
// had under way may or may not have been charged. It does not close the client.
func (l *Limiter) Stop(ctx context.Context) error {
	l.stopped.Store(true)
	errs := make([]error, len(l.lanes), len(l.lanes)+1)
	for i, ln := range l.lanes {
		errs[i] = ln.Stop(ctx)
	}
	if l.leases.lane != nil {
		errs = append(errs, l.leases.lane.Stop(ctx))
	}
	return errors.Join(errs...)
}

// Degraded reports whether decisions are made without Redis because Redis is away.
func (l *Limiter) Degraded() bool { return l.breaker.isOpen() }

// Consume charges all of the request's rules or none. It answers within the budget: while Redis is away, by the rules'
// OnBackendError. Errors: *FieldError (a request that is not valid), ErrUnavailable (a rule is closed), ErrStopped, or
// ctx's error. After ErrUnavailable or ctx's error it is unknown whether Redis was charged; retrying may charge twice.
func (l *Limiter) Consume(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, req, opConsume)
}

// Peek decides like Consume and charges nothing.
func (l *Limiter) Peek(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, req, opPeek)
}

// Refund gives back what was charged: pass it Decision.Charged. What is no longer missing is not given back: a bucket is
// never more than full. ErrUnavailable says that it may not have arrived; the bucket refills by itself in any case.
func (l *Limiter) Refund(ctx context.Context, req Request) error {
	q, err := req.check(opRefund)
	if err != nil || len(q.charges) == 0 {
		return err
	}
	if l.stopped.Load() {
		return ErrStopped
	}
	switch {
	case l.client == nil:
		l.levels.decide(&q, l.ticker.micros(), 1)
		return nil
	case req.local:
		l.levels.decide(&q, l.ticker.micros(), l.cfg.Replicas())
		return nil
	}
	_, err = l.ask(ctx, q)
	if errors.Is(err, errBackend) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func (l *Limiter) decide(ctx context.Context, req Request, o op) (Decision, error) {
	q, err := req.check(o)
	if err != nil {
		return Decision{}, err
	}
	if l.stopped.Load() {
		return Decision{}, ErrStopped
	}
	if l.client == nil {
		a := l.levels.decide(&q, l.ticker.micros(), 1)
		return l.counted(decision(&q, a, 1, ModeLocal)), nil
	}
	if len(q.charges) == 0 {
		return Decision{Allowed: true}, nil
	}
	a, err := l.ask(ctx, q)
	switch {
	case err == nil:
		return l.counted(decision(&q, a, 1, ModeRedis)), nil
	case errors.Is(err, errBackend):
		return l.degraded(&q)
	default:
		return Decision{}, err
	}
}

// ask gets the answer from Redis. Errors that make the rules' OnBackendError decide match errBackend.
func (l *Limiter) ask(ctx context.Context, q query) (answer, error) {
	pass := l.breaker.admit(l.cfg.Now())
	if pass == passRefused {
		l.metrics.failures.WithLabelValues("breaker_open").Inc()
		return answer{}, errBackend
	}
	queueing, cancel := context.WithTimeout(ctx, l.cfg.Budget/2)
	defer cancel()
	a, err := l.lane(q.tenant).Do(queueing, q)
	if err == nil {
		err = a.err
	}
	if pass == passProbe {
		l.breaker.settle(l.cfg.Now(), probeOutcome(err))
	}
	if err != nil {
		return answer{}, l.translate(ctx, err)
	}
	return a, l.checkCorrupt(&q, a)
}

func (l *Limiter) lane(tenant string) *lane.Lane[query, answer] {
	return l.lanes[maphash.String(l.seed, tenant)%uint64(len(l.lanes))]
}

// process is the lanes' work: one pipeline with as few script calls as hold the batch.
func (l *Limiter) process(ctx context.Context, batch []query) []answer {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Budget/2)
	defer cancel()
	sent := l.cfg.redisNow()
	vs := vectors(batch, l.cluster, cmp.Or(sent, l.ticker.micros()))
	calls := make([]Call, len(vs))
	for i, v := range vs {
		l.metrics.vectorSize.Observe(float64(len(v.queries)))
		calls[i] = v.call(sent)
	}
	replies := l.script.RunPipelined(ctx, l.client, calls)

	answers := make([]answer, len(batch))
	now := l.ticker.micros()
	var away error
	for n, v := range vs {
		d, err := v.read(batch, replies[n])
		if err != nil {
			if errors.Is(err, errBackend) {
				away = err
			}
			for _, i := range v.queries {
				answers[i].err = err
			}
			continue
		}
		l.metrics.rebased.Add(float64(d.rebased))
		l.levels.observe(v, batch, d, now)
		for k, i := range v.queries {
			answers[i] = d.answers[k]
		}
	}
	l.breaker.record(l.cfg.Now(), away)
	return answers
}

func (l *Limiter) counted(d Decision) Decision {
	l.metrics.count(d)
	return d
}
