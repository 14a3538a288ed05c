package replica

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
	"github.com/quotasvc/quotasvc/lua"
)

const (
	// DefaultBeat is the default time between two heartbeats. After this time all replicas know a new replica.
	DefaultBeat = 2 * time.Second

	// beatsMissed is the number of heartbeats that a replica may miss before Redis forgets it.
	beatsMissed = 3

	// beatTimeout is the longest time of a heartbeat, including the connection. It also bounds the time of Stop,
	// which sends the last heartbeat.
	beatTimeout = 500 * time.Millisecond

	// replicasKey is the key of the set of replicas in Redis. It cannot be the key of a bucket, because these have a
	// brace after "rl:".
	replicasKey = "rl:replicas"
)

// operation is the kind of a heartbeat. The script uses the same values.
type operation int64

const (
	live  operation = 0
	leave operation = 1
)

// Config is a heartbeat's configuration. The zero value is valid.
type Config struct {
	// Minimum is the smallest number of replicas by which rules are divided, 1..Max; 0 is 1. Until Redis has answered
	// for the first time, rules are divided by Minimum.
	Minimum int
	// Every is the time between two heartbeats; 0 is DefaultBeat.
	Every time.Duration
	// Log gets one line when the number of replicas changes, and when heartbeats start or stop failing. nil discards
	// these lines.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics *Metrics
}

// Heartbeat registers this process in Redis and reads which other processes decide limits in the same Redis. While
// Redis is away, the last known set of replicas is used. After Redis returns, a missing replica is removed only when
// several heartbeats have confirmed it. Create a Heartbeat with NewHeartbeat. It is safe for concurrent use.
type Heartbeat struct {
	cfg      Config
	script   *redisstore.Script
	id       uint64
	replicas atomic.Pointer[Set]

	mu      sync.Mutex // held during a heartbeat
	members membership
	failing bool // the last heartbeat failed

	stopping context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
	once     sync.Once
}

// NewHeartbeat creates a Heartbeat. It sends nothing before Start.
func NewHeartbeat(store *redisstore.Store, cfg Config) *Heartbeat {
	cfg.Minimum = min(max(cfg.Minimum, 1), Max)
	if cfg.Every <= 0 {
		cfg.Every = DefaultBeat
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(nil)
	}
	var random [8]byte
	_, _ = rand.Read(random[:])                                      // never fails
	id := max(binary.BigEndian.Uint64(random[:])&bound.MaxAmount, 1) // Lua's numbers are exact up to 2^53
	h := &Heartbeat{
		cfg: cfg, script: store.NewScript("replicas", lua.Replicas), id: id,
	}
	h.members = membership{self: h.id, others: make(map[uint64]int)}
	h.replicas.Store(Anonymous(cfg.Minimum))
	h.stopping, h.cancel = context.WithCancel(context.Background())
	return h
}

// Replicas returns the replicas as of the last heartbeat. It does not wait.
func (h *Heartbeat) Replicas() *Set { return h.replicas.Load() }

// Start sends the first heartbeat and starts the goroutine that sends the later heartbeats. It returns an error if
// Redis did not answer the first heartbeat, but starts the goroutine in any case. Call Start once.
func (h *Heartbeat) Start(ctx context.Context) error {
	err := h.beat(ctx)
	h.work.Go(h.run)
	return err
}

// Stop ends the goroutine and registers in Redis that this process leaves, so that the other replicas remove it with
// their next heartbeat. If ctx has ended or Redis does not answer, the other replicas remove it some heartbeats
// later. Stop returns no error in this case.
func (h *Heartbeat) Stop(ctx context.Context) error {
	h.once.Do(func() {
		h.cancel()
		h.work.Wait()
		ctx, cancel := context.WithTimeout(ctx, beatTimeout)
		defer cancel()
		if _, err := h.send(ctx, leave); err != nil {
			h.cfg.Log.Warn("this replica could not be removed from redis; the others will drop it after some heartbeats", "error", err)
		}
	})
	return nil
}

func (h *Heartbeat) run() {
	backoff.Every(h.stopping, h.cfg.Every, func(time.Time) {
		_ = h.beat(h.stopping) // logged and counted
	})
}

// beat sends one heartbeat and updates the set of replicas with the reply.
func (h *Heartbeat) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	h.mu.Lock()
	defer h.mu.Unlock()
	s, err := h.send(ctx, live)
	if err != nil {
		if h.stopping.Err() == nil {
			h.fail(err)
		}
		return err
	}
	if h.failing {
		h.failing = false
		h.cfg.Log.Info("heartbeats are answered again")
	}
	before := h.Replicas()
	if changed := h.members.beat(s); !changed && before.known {
		return nil
	}
	now := Known(h.id, h.members.list(), h.cfg.Minimum)
	h.replicas.Store(now)
	h.cfg.Metrics.live.Set(float64(now.Live()))
	if now.Live() != before.Live() {
		h.cfg.Log.Info("the number of live replicas has changed", "live", now.Live(), "before", before.Live(), "divided_by", now.Count())
	}
	return nil
}

// fail records a failed heartbeat. The caller holds mu.
func (h *Heartbeat) fail(err error) {
	h.members.missed()
	h.cfg.Metrics.beatFailures.Inc()
	if !h.failing {
		h.failing = true
		h.cfg.Log.Warn("heartbeats are not answered; the number of replicas stays as it was", "divided_by", h.Replicas().Count(), "error", err)
	}
}

// send runs the script once.
func (h *Heartbeat) send(ctx context.Context, op operation) (heartbeats, error) {
	ttl := max(beatsMissed*h.cfg.Every, time.Millisecond)
	call := redisstore.Call{Keys: []string{replicasKey}, Args: []any{int64(op), h.id, ttl.Microseconds()}}
	reply := h.script.Run(ctx, call)[0]
	if reply.Err != nil {
		return heartbeats{}, fmt.Errorf("heartbeat: %w", reply.Err)
	}
	return readBeats(reply.Ints)
}
