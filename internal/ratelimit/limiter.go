package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
	"github.com/quotasvc/quotasvc/lua"
)

const (
	// DefaultLanes is the number of pipelines that a process has in Redis at a time. While Redis executes one
	// pipeline, the process encodes or decodes the other. With more lanes the batches would be smaller, and the fixed
	// cost of a script call would be shared by fewer requests.
	DefaultLanes = 2

	// maxBatchCharges is the largest number of charges and read keys in one pipeline. Such a pipeline takes a few ms,
	// far less than the budget.
	maxBatchCharges = 1024

	// corruptLogEvery is the minimum time between two log lines about unreadable buckets, because an attacker or a
	// bug may produce thousands per second.
	corruptLogEvery = 10 * time.Second
)

// Config is a limiter's configuration. The zero value is valid.
type Config struct {
	// Lanes is the number of pipelines in Redis at a time; 0 is DefaultLanes.
	Lanes int
	// MaxLocalLevels is the largest number of bucket levels kept in the process; 0 is DefaultMaxLocalLevels.
	MaxLocalLevels int
	// Replicas returns the replicas that share the rules while Redis is away, usually Heartbeat.Replicas. During an
	// outage it is called for each decision. nil means that this process has no other replicas.
	Replicas func() *replica.Set
	// Log gets one line when decisions change from Redis to this process or back. nil discards these lines.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
	// Now is the clock of local decisions; nil is time.Now. Decisions in Redis use Redis's clock.
	Now func() time.Time

	// redisNow is for tests: scripts use its time, in µs, instead of Redis's. If it is set, denials are remembered
	// only if Now is also set. Otherwise this process and the scripts would use different clocks.
	redisNow  func() int64
	forgetful bool
}

// Limiter decides requests. New creates it. It is safe for concurrent use.
type Limiter struct {
	cfg     Config
	store   *redisstore.Store // nil: local mode
	script  *redisstore.Script
	lanes   *redisstore.Lanes[query, answer]
	local   *localState
	leases  *leases
	denials *denials
	micros  func() int64 // µs of a clock that does not jump
	metrics *Metrics

	background background // refunds in other slots, and the goroutine that carries charges to Redis
	carrying   atomic.Bool
	stopping   context.Context
	cancel     context.CancelFunc

	stopped    atomic.Bool
	corruptLog atomic.Int64 // µs of the last log line about an unreadable bucket
}

// New creates a limiter on store. If store is nil, the limiter is in local mode: it decides for one process, with the
// same results. New must be called before the store's first request.
func New(store *redisstore.Store, cfg Config) *Limiter {
	cfg = cfg.withDefaults()
	l := &Limiter{
		cfg:     cfg,
		store:   store,
		metrics: cfg.Metrics,
		local:   newLocalState(cfg.MaxLocalLevels, cfg.Metrics),
		denials: newDenials(),
		micros:  monotonicMicros(cfg.Now),
	}
	l.stopping, l.cancel = context.WithCancel(context.Background())
	l.leases = newLeases(l)
	if store != nil {
		l.local.epochs = &epochs{cluster: store.IsCluster(), maxTags: l.local.max * localStripes, all: make(map[string]int64)}
		l.local.carry = l.carryOn
		store.OnChange(l.noteShard)
		l.local.dropped = store.Watch().Forget
		l.script = store.NewScript("limits", lua.Limits)
		l.lanes = redisstore.NewLanes(store, redisstore.Work[query, answer]{
			Name: "limits", Lanes: cfg.Lanes, MaxBatch: maxBatchCharges,
			Weight:    func(q query) int { return len(q.charges) },
			NewSender: l.newSender,
		})
	}
	return l
}

func (cfg Config) withDefaults() Config {
	if cfg.Lanes <= 0 {
		cfg.Lanes = DefaultLanes
	}
	if cfg.Replicas == nil {
		cfg.Replicas = func() *replica.Set { return nil }
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	cfg.forgetful = cfg.forgetful || cfg.redisNow != nil && cfg.Now == nil
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.redisNow == nil {
		cfg.redisNow = func() int64 { return 0 }
	}
	return cfg
}

// Stop refuses new requests, waits for refunds in other slots, and sends charges of this process to the shards of Redis
// that answer. Each takes the budget at most. Stop the store after the limiter: the store's Stop finishes the queued requests.
func (l *Limiter) Stop(ctx context.Context) error {
	l.stopped.Store(true)
	l.cancel()
	l.background.stop()
	if l.store != nil {
		ctx, cancel := context.WithTimeout(ctx, l.store.Budget())
		defer cancel()
		l.carry(ctx)
	}
	return nil
}

// Consume charges the request on all its rules or on none. It answers within the budget. While Redis is away, the
// rules' OnBackendError decides. Errors are *rule.FieldError (the request is not valid), ErrUnavailable (a rule is
// closed while Redis is away), ErrStopped, and the error of ctx. After ErrUnavailable or the error of ctx, the
// request may have been charged in Redis, so a retry may charge twice.
func (l *Limiter) Consume(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, req, rule.Consume)
}

// Peek decides like Consume and charges nothing.
func (l *Limiter) Peek(ctx context.Context, req Request) (Decision, error) {
	return l.decide(ctx, req, rule.Peek)
}

func (l *Limiter) decide(ctx context.Context, req Request, o rule.Op) (Decision, error) {
	q, err := req.check(o)
	if err != nil {
		return Decision{}, err
	}
	if l.stopped.Load() {
		return Decision{}, ErrStopped
	}
	if l.store == nil {
		return l.decideLocally(&q), nil
	}
	if len(q.charges) == 0 {
		return Decision{Allowed: true}, nil
	}
	d, known := l.recall(&q)
	if !known {
		d, known = l.peekHeld(&q)
	}
	if !known {
		if d, err = l.askStore(ctx, &q); err != nil {
			return Decision{}, err
		}
	}
	return l.counted(d), nil
}

// decideLocally decides without Redis, in local mode.
func (l *Limiter) decideLocally(q *query) Decision {
	a := l.local.decide(q, l.micros(), nil)
	return l.counted(decision(q, a, nil, ModeLocal))
}

// askStore decides q in Redis, or by the rules' policies if Redis is away. If q has parts in several slots of a
// cluster, askStore decides one part after another.
func (l *Limiter) askStore(ctx context.Context, q *query) (Decision, error) {
	deadline := l.store.QueueDeadline(ctx)
	if l.store.IsCluster() {
		parts := q.parts()
		if len(parts) > 1 {
			return l.staged(ctx, deadline, q, parts)
		}
		q = &parts[0]
	}
	return l.decideTogether(ctx, deadline, q)
}

// decideTogether decides q in Redis, or by the rules' policies if Redis is away. On a cluster all buckets of q must
// have the same hash tag.
func (l *Limiter) decideTogether(ctx context.Context, deadline time.Time, q *query) (Decision, error) {
	var own Decision
	returning := q.op != rule.Late && l.returning(q.charges[0].key)
	if returning {
		if own = l.share(q, true); !own.Allowed {
			// Whether Redis is back must be found out in any case. It gets the levels that this process knows.
			_, _ = l.ask(ctx, deadline, &query{op: rule.Peek, tenant: q.tenant, charges: q.charges, fresh: true})
			return own, nil
		}
	}
	asked, asOf := l.micros(), l.denials.asOf(q)
	a, err := l.ask(ctx, deadline, q)
	if returning && (err != nil || !a.allowed) {
		l.unshare(q, &own)
	}
	switch {
	case err == nil:
		d := decision(q, a, nil, ModeRedis)
		l.learn(q, &d, asked, &asOf)
		return d, nil
	case errors.Is(err, redisstore.ErrAway):
		return l.degraded(q)
	default:
		return Decision{}, err
	}
}

// ask sends q to Redis and returns the answer. On a cluster all buckets of q must have the same hash tag. If the
// error matches redisstore.ErrAway, the caller must let the rules' OnBackendError decide.
func (l *Limiter) ask(ctx context.Context, deadline time.Time, q *query) (answer, error) {
	a, err := l.lanes.Do(ctx, deadline, q.charges[0].key, *q, q.with)
	if err != nil {
		return answer{}, storeError(err)
	}
	return a, l.checkCorrupt(q, a)
}

// storeError replaces an error of the store by the error of this package with the same meaning, if there is one.
func storeError(err error) error {
	switch {
	case errors.Is(err, redisstore.ErrStopped):
		return ErrStopped
	case errors.Is(err, redisstore.ErrUnfinished):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return err
	}
}

// newSender returns the function with which one lane sends its batches. Each lane has its own workbench.
func (l *Limiter) newSender() func(*redisstore.Batch, []query) []redisstore.Result[answer] {
	bench := newWorkbench(l.store.IsCluster())
	return func(b *redisstore.Batch, queries []query) []redisstore.Result[answer] {
		return l.send(b, bench, queries)
	}
}

// send decides a batch with as few script calls as possible, in one pipeline. Two kinds of queries return undecided
// and are sent once more. If Redis's clock was in another calendar window, the query is sent with that window. If
// Redis had lost its data, the query is sent after the buckets were raised to the known levels.
func (l *Limiter) send(b *redisstore.Batch, bench *workbench, queries []query) []redisstore.Result[answer] {
	results := l.pipeline(b, bench, queries, b.Now())
	var again []query
	var at []int
	now := int64(0)
	for i := range results {
		if a := &results[i].Answer; a.stale || a.lost {
			again, at, now = append(again, queries[i]), append(at, i), results[i].Answer.now
		}
	}
	if len(again) > 0 {
		l.sendAgain(b, bench, again, at, now, results)
	}
	return results
}

// sendAgain sends undecided queries with the calendar windows of now. It stores the n'th result in results[at[n]].
func (l *Limiter) sendAgain(b *redisstore.Batch, bench *workbench, queries []query, at []int, now int64, results []redisstore.Result[answer]) {
	for _, i := range at {
		if results[i].Answer.stale {
			l.metrics.stale.Inc()
		}
	}
	for n, r := range l.pipeline(b, bench, queries, now) {
		if r.Answer.stale || r.Answer.lost {
			r = redisstore.Result[answer]{Err: errStale}
		}
		results[at[n]] = r
	}
}

// pipeline sends queries once, in one pipeline, with the calendar windows of now.
func (l *Limiter) pipeline(b *redisstore.Batch, bench *workbench, queries []query, now int64) []redisstore.Result[answer] {
	defer bench.clear()
	vectors := bench.vectors(queries, now)
	for _, v := range vectors {
		l.metrics.vectorSize.Observe(float64(len(v.queries)))
	}
	results := make([]redisstore.Result[answer], len(queries))
	if vectors = l.sendEpochs(b, vectors, queries, results); len(vectors) == 0 {
		return results
	}
	replies := b.Run(l.script, bench.calls(vectors, l.cfg.redisNow()))
	if l.store.IsCluster() {
		l.sendMoving(b, vectors, replies)
	}

	received := l.micros()
	for n, v := range vectors {
		d, err := v.read(queries, replies[n], results)
		if err != nil {
			for _, i := range v.queries {
				results[i].Err = err
			}
			continue
		}
		b.SetNow(d.now)
		if d.epoch != v.epoch {
			l.onEpoch(v, d.epoch)
		}
		if d.lost {
			continue
		}
		l.metrics.rebased.Add(float64(d.rebased))
		charged := false
		for _, i := range v.queries {
			op := queries[i].op
			charged = charged || (op == rule.Consume || op == rule.Late) && results[i].Answer.allowed
		}
		if charged {
			b.Wrote()
		}
		if l.local.observe(v, results, received, l.returning(v.keys[0])) && v.peeks {
			b.Kept(v.keys)
		}
	}
	return results
}

// sendMoving sends a vector once more if its slot is moving between two nodes. It leaves out the key of the epoch,
// which may be on the other node.
func (l *Limiter) sendMoving(b *redisstore.Batch, vectors []*vector, replies []redisstore.Reply) {
	for n, v := range vectors {
		if errors.Is(replies[n].Err, redisstore.ErrMoving) {
			v.epoch = 0
			replies[n] = b.Run(l.script, []redisstore.Call{v.call(l.cfg.redisNow())})[0]
		}
	}
}

// Replicas returns the replicas that share the rules while Redis is away.
func (l *Limiter) Replicas() *replica.Set { return l.cfg.Replicas() }

// replicasOf returns the replicas that share the rules, if this process decided because Redis is away. It returns nil
// if Redis decided, and in local mode.
func (l *Limiter) replicasOf(m Mode) *replica.Set {
	if l.store == nil || m != ModeLocal {
		return nil
	}
	return l.cfg.Replicas()
}

// Forget drops the metrics of rules that no longer exist. labels are their metric labels.
func (l *Limiter) Forget(labels []string) { l.metrics.Forget(labels) }

func (l *Limiter) counted(d Decision) Decision {
	l.metrics.count(d)
	return d
}
