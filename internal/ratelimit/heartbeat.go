package ratelimit

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/lua"
)

const (
	// DefaultBeat is the time between two beats: a new replica is known to all after it.
	DefaultBeat = 2 * time.Second

	// beatsMissed is how many beats a replica may miss before Redis forgets it.
	beatsMissed = 3

	// beatTimeout bounds a beat: a connection and an answer. It is the longest a goodbye holds up a stop.
	beatTimeout = 500 * time.Millisecond

	// replicasKey is the set of replicas. No bucket has this name: theirs go on with a brace.
	replicasKey = "rl:replicas"
)

// beatOp is what a replica says. The values are the script's.
type beatOp int64

const (
	beatLive  beatOp = 0
	beatLeave beatOp = 1
)

// HeartbeatConfig is a heartbeat's configuration. The zero value is valid.
type HeartbeatConfig struct {
	// Floor is how many replicas are reckoned with at least, 1..MaxReplicas, and all that is known of them before Redis has
	// answered for the first time; 0 is 1.
	Floor int
	// Every is the time between two beats; 0 is DefaultBeat.
	Every time.Duration
	// Log gets one line per change of the number of replicas, and per change between hearing them and not; nil discards them.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
}

// Heartbeat makes this process known to the others that decide in the same Redis, and knows them. Their number is what it was
// last when Redis goes away, and is not believed to have fallen until a Redis that answers has said so for a while. Make it
// with NewHeartbeat; it is safe for concurrent use.
type Heartbeat struct {
	cfg      HeartbeatConfig
	client   redis.UniversalClient
	script   *Script
	id       uint64
	replicas atomic.Pointer[Replicas]

	mu     sync.Mutex // a beat's
	known  membership
	silent bool // the last beat has failed

	stopping context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
	once     sync.Once
}

// NewHeartbeat makes a heartbeat on client, which must have its timeouts set, as NewClient's do. It does nothing until Start.
func NewHeartbeat(client redis.UniversalClient, cfg HeartbeatConfig) *Heartbeat {
	cfg.Floor = min(max(cfg.Floor, 1), MaxReplicas)
	if cfg.Every <= 0 {
		cfg.Every = DefaultBeat
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	var random [8]byte
	_, _ = rand.Read(random[:])                                      // never fails
	id := max(binary.BigEndian.Uint64(random[:])&bound.MaxAmount, 1) // what scripts' numbers hold
	h := &Heartbeat{
		cfg: cfg, client: client, script: NewScript("replicas", lua.Replicas, cfg.Metrics), id: id,
	}
	h.known = membership{self: h.id, others: make(map[uint64]int)}
	h.replicas.Store(Unnamed(cfg.Floor))
	h.stopping, h.cancel = context.WithCancel(context.Background())
	return h
}

// Replicas are the processes that live, as far as is known, this one included. It costs nothing to ask.
func (h *Heartbeat) Replicas() *Replicas { return h.replicas.Load() }

// Start makes this process known, and starts the goroutine that goes on with it. The error says that Redis has not answered;
// the heartbeat goes on all the same. Call it once.
func (h *Heartbeat) Start(ctx context.Context) error {
	err := h.beat(ctx)
	h.work.Go(h.run)
	return err
}

// Stop ends the goroutine and says goodbye, so that the others know at once. If ctx has ended, or Redis does not answer, they
// find out by themselves: that is no error.
func (h *Heartbeat) Stop(ctx context.Context) error {
	h.once.Do(func() {
		h.cancel()
		h.work.Wait()
		ctx, cancel := context.WithTimeout(ctx, beatTimeout)
		defer cancel()
		if _, err := h.say(ctx, beatLeave); err != nil {
			h.cfg.Log.Warn("the other replicas do not know that this one ends: they will notice", "error", err)
		}
	})
	return nil
}

func (h *Heartbeat) run() {
	tick := time.NewTicker(h.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-h.stopping.Done():
			return
		case <-tick.C:
			_ = h.beat(h.stopping) // logged and counted
		}
	}
}

// beat says that this process lives, and hears who else does.
func (h *Heartbeat) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.say(ctx, beatLive)
	if err != nil {
		if h.stopping.Err() == nil {
			h.fail(err)
		}
		return err
	}
	if h.silent {
		h.silent = false
		h.cfg.Log.Info("the other replicas are heard again")
	}
	before := h.Replicas()
	if changed := h.known.heard(s); !changed && before.named {
		return nil
	}
	now := named(h.id, h.known.list(), h.cfg.Floor)
	h.replicas.Store(now)
	h.cfg.Metrics.replicasLive.Set(float64(now.Live()))
	if now.Live() != before.Live() {
		h.cfg.Log.Info("the number of live replicas has changed", "live", now.Live(), "before", before.Live(), "divided_by", now.Count())
	}
	return nil
}

// fail needs the lock.
func (h *Heartbeat) fail(err error) {
	h.known.failed()
	h.cfg.Metrics.beatFailures.Inc()
	if !h.silent {
		h.silent = true
		h.cfg.Log.Warn("the other replicas are not heard: as many count as before", "divided_by", h.Replicas().Count(), "error", err)
	}
}

// say runs the script once.
func (h *Heartbeat) say(ctx context.Context, op beatOp) (signs, error) {
	ttl := max(beatsMissed*h.cfg.Every, time.Millisecond)
	ints, err := h.script.Run(ctx, h.client, Call{Keys: []string{replicasKey}, Args: []any{int64(op), h.id, ttl.Microseconds()}})
	if err != nil {
		return signs{}, fmt.Errorf("heartbeat: %w", err)
	}
	return readSigns(ints)
}
