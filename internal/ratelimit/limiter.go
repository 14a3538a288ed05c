package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lane"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
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

	// loadTimeout bounds giving the scripts to a node of a cluster.
	loadTimeout = time.Second

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
	// Replicas says what the rules are divided among while Redis is away: Heartbeat.Replicas. It is called per decision then.
	// nil is this process alone.
	Replicas func() *Replicas
	// Log gets one line per change between Redis and local decisions; nil discards them.
	Log *slog.Logger
	// Metrics and LaneMetrics may be nil.
	Metrics     *Metrics
	LaneMetrics *lane.Metrics
	// Now is the clock of local decisions and of the breaker; nil is time.Now. Decisions in Redis use Redis' clock.
	Now func() time.Time

	// redisNow, in tests, is the time in us that scripts use instead of Redis' own. Nothing is remembered then: the process
	// has another clock.
	redisNow  func() int64
	forgetful bool
}

// Limiter decides requests. Make it with New; it is safe for concurrent use.
type Limiter struct {
	cfg     Config
	client  redis.UniversalClient // nil: local mode
	cluster bool
	script  *Script
	shards  *shards // nil in local mode
	seed    maphash.Seed
	away    atomic.Int32 // shards whose breaker is open
	levels  *levels
	leases  *leases
	denials *denials
	ticker  ticker
	metrics *Metrics

	background background // refunds between slots

	stopped    atomic.Bool
	corruptLog atomic.Int64 // us of the last line about an unreadable bucket
}

// New makes a limiter on client, or in local mode if client is nil: one process, the same semantics. The client must have
// its timeouts set and respect contexts, as NewClient's do. New starts goroutines: end them with Stop.
func New(client redis.UniversalClient, cfg Config) *Limiter {
	cfg = cfg.withDefaults()
	l := &Limiter{
		cfg:     cfg,
		client:  client,
		script:  NewScript("limits", lua.Limits, cfg.Metrics),
		seed:    maphash.MakeSeed(),
		metrics: cfg.Metrics,
		levels:  newLevels(cfg.MaxLocalLevels, cfg.Metrics),
		denials: newDenials(),
		ticker:  ticker{now: cfg.Now, start: cfg.Now()},
	}
	_, l.cluster = client.(*redis.ClusterClient)
	l.leases = newLeases(l)
	if client != nil {
		l.shards = newShards(client, l)
	}
	return l
}

// newShard implements shardOwner.
func (l *Limiter) newShard(name string) *shard {
	sh := &shard{name: name}
	sh.breaker = &breaker{onChange: func(open bool, err error) { l.noteShard(sh, open, err) }}
	config := func(name string, maxBatch int) lane.Config {
		return lane.Config{
			Name: name, MaxQueue: l.cfg.MaxQueue, MaxBatch: maxBatch, Metrics: l.cfg.LaneMetrics, Log: l.cfg.Log, Now: l.cfg.Now,
		}
	}
	for range l.cfg.Lanes {
		bench := newWorkbench(l.cluster) // the lane's goroutine only
		sh.lanes = append(sh.lanes, lane.New(
			config("limits", maxBatchCharges),
			func(q query) int { return len(q.charges) + len(q.reads) },
			func(ctx context.Context, batch []query) []answer { return l.process(ctx, sh, bench, batch) },
		))
	}
	sh.leases = lane.New(config("leases", maxLeaseBatch), nil,
		func(ctx context.Context, batch []leaseCall) []leaseReply { return l.processLeases(ctx, sh, batch) })
	sh.reads = lane.New(config("reads", maxReadBatch), func(q readQuery) int { return len(q.keys) },
		func(ctx context.Context, batch []readQuery) []readAnswer { return l.processReads(ctx, sh, batch) })
	l.metrics.shardAway.WithLabelValues(name).Set(0)
	return sh
}

// shardGone implements shardOwner.
func (l *Limiter) shardGone(sh *shard) {
	sh.breaker.reset()
	l.metrics.shardAway.DeleteLabelValues(sh.name)
}

// anyAway implements shardOwner.
func (l *Limiter) anyAway() bool { return l.away.Load() > 0 }

// micros implements shardOwner.
func (l *Limiter) micros() int64 { return l.ticker.micros() }

// loadScripts implements shardOwner. A node that cannot take a script now gets it with the first call that misses it.
func (l *Limiter) loadScripts(ctx context.Context, node *redis.Client) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	if err := errors.Join(l.script.Load(ctx, node), l.leases.script.Load(ctx, node)); err != nil {
		l.cfg.Log.Debug("a new redis node did not take the scripts", "node", node.Options().Addr, "error", err)
	}
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
		cfg.Replicas = func() *Replicas { return nil }
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
	cfg.forgetful = cfg.forgetful || cfg.redisNow != nil
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
	return errors.Join(l.shards.learn(ctx, ""), l.script.Load(ctx, l.client), l.leases.script.Load(ctx, l.client))
}

// Stop refuses new requests, decides the queued ones and ends the goroutines. If ctx ends first they are cut off, and what
// they had under way may or may not have been charged. It does not close the client.
func (l *Limiter) Stop(ctx context.Context) error {
	l.stopped.Store(true)
	if l.client == nil {
		return nil
	}
	l.background.stop()
	return l.shards.stop(ctx)
}

// Degraded reports whether decisions are made without Redis because Redis, or a master of its cluster, is away.
func (l *Limiter) Degraded() bool { return l.anyAway() }

// Consume charges all of the request's rules or none. It answers within the budget: while Redis is away, by the rules'
// OnBackendError. Errors: *FieldError (a request that is not valid), ErrUnavailable (a rule is closed), ErrStopped, or
// ctx's error. After ErrUnavailable or ctx's error it is unknown whether Redis was charged; retrying may charge twice.
func (l *Limiter) Consume(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, req, rule.Consume)
}

// Peek decides like Consume and charges nothing.
func (l *Limiter) Peek(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, req, rule.Peek)
}

// Replicas are what rules are divided among while Redis is away.
func (l *Limiter) Replicas() *Replicas { return l.cfg.Replicas() }

// replicasOf is what a rule is divided among where it is decided.
func (l *Limiter) replicasOf(m Mode) *Replicas {
	if l.client == nil || m != ModeLocal {
		return nil
	}
	return l.cfg.Replicas()
}

// parts are what of q can be decided together.
func (l *Limiter) parts(q *query) []part {
	if !l.cluster {
		return []part{{query: *q}}
	}
	return q.parts()
}

func (l *Limiter) decide(ctx context.Context, req Request, o rule.Op) (Decision, error) {
	q, err := req.check(o)
	if err != nil {
		return Decision{}, err
	}
	if l.stopped.Load() {
		return Decision{}, ErrStopped
	}
	if l.client == nil {
		a := l.levels.decide(&q, l.ticker.micros(), nil)
		return l.counted(decision(&q, a, nil, ModeLocal)), nil
	}
	if len(q.charges) == 0 {
		return Decision{Allowed: true}, nil
	}
	if d, denied := l.recall(&q); denied {
		return l.counted(d), nil
	}
	var d Decision
	if parts := l.parts(&q); len(parts) > 1 {
		d, err = l.staged(ctx, l.turn(ctx), &q, parts)
	} else {
		d, err = l.decideTogether(ctx, l.turn(ctx), &parts[0].query)
	}
	if err != nil {
		return Decision{}, err
	}
	return l.counted(d), nil
}

// turn is until when a call that begins now may wait for its turn: half of the budget, as the other half is Redis', and not
// longer than ctx. Whoever cancels ctx meanwhile is waited for no longer than that either, which is short.
func (l *Limiter) turn(ctx context.Context) time.Time {
	until := time.Now().Add(l.cfg.Budget / 2) // not by cfg.Now: it ends a real wait, as a context's deadline does
	if own, ok := ctx.Deadline(); ok && own.Before(until) {
		return own
	}
	return until
}

// decideTogether decides q, which is one part on a cluster, in Redis, and if Redis does not by the rules' policies.
func (l *Limiter) decideTogether(ctx context.Context, turn time.Time, q *query) (Decision, error) {
	asked, asOf := l.ticker.micros(), l.denials.asOf(q)
	a, err := l.ask(ctx, turn, *q)
	switch {
	case err == nil:
		d := decision(q, a, nil, ModeRedis)
		l.learn(q, &d, asked, &asOf)
		return d, nil
	case errors.Is(err, errBackend):
		return l.degraded(q)
	default:
		return Decision{}, err
	}
}

// ask gets the answer from Redis. On a cluster q must be one part. Errors that make the rules' OnBackendError decide match
// errBackend.
func (l *Limiter) ask(ctx context.Context, turn time.Time, q query) (answer, error) {
	of := func(sh *shard) *lane.Lane[query, answer] { return sh.lane(l.seed, q.charges[0].tag) }
	a, err := through(ctx, turn, l, q.charges[0].key, q, of, func(a answer) error { return a.err })
	if err != nil {
		return answer{}, err
	}
	return a, l.checkCorrupt(&q, a)
}

// ready reports why a batch for sh, which key is for, should not be sent: the breaker has opened while it was queued, or
// nobody knows a cluster's masters.
func (l *Limiter) ready(ctx context.Context, sh *shard, key string) error {
	if sh.breaker.refusesAll() {
		return errRefused
	}
	err := l.shards.learn(ctx, key)
	if err != nil {
		err = fmt.Errorf("%w: find the cluster's masters: %w", errBackend, err)
		sh.breaker.record(l.cfg.Now(), err)
	}
	return err
}

// process is the lanes' work: one pipeline with as few script calls as hold the batch. Requests that Redis' clock had other
// windows for are sent once more, with those: nothing of them was decided.
func (l *Limiter) process(ctx context.Context, sh *shard, bench *workbench, batch []query) []answer {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Budget/2)
	defer cancel()
	if err := l.ready(ctx, sh, batch[0].charges[0].key); err != nil {
		answers := make([]answer, len(batch))
		for i := range answers {
			answers[i].err = err
		}
		return answers
	}
	answers := l.pipeline(ctx, sh, bench, batch, l.ticker.micros()+sh.ahead.Load())
	var again []query
	var at []int
	now := int64(0)
	for i := range answers {
		if answers[i].stale {
			again, at, now = append(again, batch[i]), append(at, i), answers[i].now
		}
	}
	if len(again) == 0 {
		return answers
	}
	l.metrics.stale.Add(float64(len(again)))
	for n, a := range l.pipeline(ctx, sh, bench, again, now) {
		if a.stale {
			a = answer{err: errStale}
		}
		answers[at[n]] = a
	}
	return answers
}

// pipeline sends batch once, with the windows of now.
func (l *Limiter) pipeline(ctx context.Context, sh *shard, bench *workbench, batch []query, now int64) []answer {
	sent := l.ticker.micros()
	defer bench.clear()
	vs := bench.vectors(batch, now)
	for _, v := range vs {
		l.metrics.vectorSize.Observe(float64(len(v.queries)))
	}
	replies := l.script.RunPipelined(ctx, l.client, bench.calls(l.cfg.redisNow()))

	answers := make([]answer, len(batch))
	received := l.ticker.micros()
	var away error
	for n, v := range vs {
		d, err := v.read(batch, replies[n], answers)
		if err != nil {
			if blamesShard(err) {
				away = err
			}
			for _, i := range v.queries {
				answers[i].err = err
			}
			continue
		}
		sh.ahead.Store(d.now - sent)
		l.metrics.rebased.Add(float64(d.rebased))
		charged := false
		for _, i := range v.queries {
			charged = charged || batch[i].op == rule.Consume && answers[i].allowed
		}
		if charged {
			sh.breaker.wrote()
		}
		l.levels.observe(v, answers, charged, received)
	}
	sh.breaker.record(l.cfg.Now(), away)
	return answers
}

// Forget drops the metrics of rules that are no more.
func (l *Limiter) Forget(rules []string) { l.metrics.Forget(rules) }

func (l *Limiter) counted(d Decision) Decision {
	l.metrics.count(d)
	return d
}
