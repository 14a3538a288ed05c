package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

const (
	// noEviction is the only maxmemory-policy with which a full Redis refuses writes instead of deleting keys.
	noEviction = "noeviction"

	// evictionEvery is the pause between two queries of the policy. A change of the policy, a failover and a restart
	// of Redis are noticed within this time. One query costs a master about 0.1 ms.
	evictionEvery = 5 * time.Second

	// evictionAgain is the pause after which an unchanged finding is logged again.
	evictionAgain = 10 * time.Minute

	// evictionTimeout bounds the queries of Look, and each later query of all masters. Look sends up to evictionTries
	// queries, because the first answers of a busy server may be late.
	evictionTimeout = 500 * time.Millisecond
	evictionTries   = 3

	// oldestMajor is the oldest major version of Redis that the service supports. Before version 5 a script that has
	// read the clock must not write. From version 6 on, Redis tells which keys have changed.
	oldestMajor = 6

	// failoverName is the address that go-redis returns for a master whose address it gets from sentinels.
	failoverName = "FailoverClient"
)

// Evicting describes a master whose policy allows it to delete keys that have not expired.
type Evicting struct {
	Node      string
	Policy    string
	MaxMemory int64 // bytes; 0: unlimited, so nothing is evicted until a limit is set
	Evicted   int64 // keys, since the start of the server

	version string // of the server
}

// EvictionError says that masters may delete keys that have not expired.
type EvictionError struct{ Masters []Evicting }

func (e *EvictionError) Error() string {
	nodes := make([]string, len(e.Masters))
	for i, m := range e.Masters {
		nodes[i] = fmt.Sprintf("%s has maxmemory-policy %s (maxmemory %d bytes, %d keys evicted)", m.Node, m.Policy, m.MaxMemory, m.Evicted)
	}
	return "redis: " + strings.Join(nodes, "; ") + ". An evicted bucket is a full bucket: its limit would admit everything twice. " +
		"Set maxmemory-policy noeviction (redis-cli CONFIG SET maxmemory-policy noeviction, and in its configuration or parameter group)"
}

// EvictionWatch finds out whether masters may evict keys, and whether they are too old. It sends INFO to each master, because
// managed servers forbid CONFIG. A master without a memory limit (maxmemory 0) is reported, too, because a limit can
// be set at any time.
type EvictionWatch struct {
	store  *Store
	log    *slog.Logger
	every  time.Duration
	cancel context.CancelFunc
	ended  sync.WaitGroup

	found   atomic.Pointer[EvictionError]
	logged  string // the line of the previous finding
	at      time.Time
	unknown int    // masters that did not report their policy
	old     string // the version of a master that is too old
}

// NewEvictionWatch creates a watch on the masters of s. It sends no query before Look or Start.
func NewEvictionWatch(s *Store, log *slog.Logger) *EvictionWatch {
	return &EvictionWatch{store: s, log: log, every: evictionEvery, cancel: func() {}}
}

// Look queries the masters at the start of the service. It returns an *EvictionError if a master may evict keys, and
// nil otherwise. A master that does not answer is no error, because Redis may be away when the service starts. Call
// Look before Start.
func (w *EvictionWatch) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, evictionTimeout)
	defer cancel()
	for range evictionTries {
		if w.look(ctx) {
			break
		}
	}
	return w.Found()
}

// Start queries the masters every few seconds until Stop, and logs what it finds.
func (w *EvictionWatch) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.ended.Go(func() { w.run(ctx) })
}

// Stop ends the queries.
func (w *EvictionWatch) Stop(context.Context) error {
	w.cancel()
	w.ended.Wait() // within evictionTimeout
	return nil
}

// Found returns an *EvictionError if a master may evict keys according to the latest answers, and nil otherwise.
func (w *EvictionWatch) Found() error {
	if e := w.found.Load(); e != nil {
		return e
	}
	return nil
}

func (w *EvictionWatch) run(ctx context.Context) {
	backoff.Every(ctx, w.every, func(time.Time) {
		within, cancel := context.WithTimeout(ctx, evictionTimeout)
		defer cancel()
		w.look(within)
		if ctx.Err() == nil {
			w.logFound()
		}
	})
}

// look queries the masters once. It returns false if a master did not answer. In this case it stores the answers of
// the other masters only if one of these masters may evict keys.
func (w *EvictionWatch) look(ctx context.Context) (complete bool) {
	masters, unknown, err := w.store.policies(ctx)
	w.noteOld(masters)
	evicting := slices.DeleteFunc(masters, func(m Evicting) bool { return m.Policy == noEviction })
	if err != nil && len(evicting) == 0 {
		return false
	}
	w.noteUnknown(unknown)
	w.store.metrics.evicting.Set(float64(len(evicting)))
	if len(evicting) == 0 {
		w.found.Store(nil)
	} else {
		w.found.Store(&EvictionError{Masters: evicting})
	}
	return err == nil
}

func (w *EvictionWatch) noteUnknown(n int) {
	w.store.metrics.policyUnknown.Set(float64(n))
	if n > 0 && w.unknown == 0 {
		w.log.Warn("redis does not report its maxmemory-policy: make sure that it is noeviction, and let the service's user run INFO", "masters", n)
	}
	w.unknown = n
}

// noteOld logs once if a master is too old.
func (w *EvictionWatch) noteOld(masters []Evicting) {
	for _, m := range masters {
		number, _, _ := strings.Cut(m.version, ".")
		if major, err := strconv.Atoi(number); err == nil && major < oldestMajor && m.version != w.old {
			w.log.Warn("redis is older than the versions that quotasvc supports", "node", m.Node, "version", m.version, "oldest", oldestMajor)
			w.old = m.version
		}
	}
}

// logFound logs a new finding, and repeats it every evictionAgain.
func (w *EvictionWatch) logFound() {
	line := ""
	if e := w.found.Load(); e != nil {
		line = e.Error()
	}
	switch now := time.Now(); {
	case line == "" && w.logged != "":
		w.log.Info("redis no longer evicts keys")
	case line != "" && (w.logged == "" || now.Sub(w.at) >= evictionAgain):
		w.log.Error("redis may evict keys; a start of the service would be refused", "error", line)
		w.at = now
	}
	w.logged = line
}

// policies returns the policy of every master. unknown is the number of masters that answered without a policy. If a
// master did not answer, it returns an error, together with the policies of the other masters.
func (s *Store) policies(ctx context.Context) (masters []Evicting, unknown int, err error) {
	var mu sync.Mutex
	ask := func(ctx context.Context, master *redis.Client) error {
		m, err := policyOf(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			return err
		case m.Policy == "":
			unknown++
		default:
			masters = append(masters, m)
		}
		return nil
	}
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, ask)
	case *redis.Client:
		err = ask(ctx, c)
	}
	return masters, unknown, err
}

// policyOf queries one master. The policy is empty if the master refuses the command or does not report its policy.
func policyOf(ctx context.Context, master *redis.Client) (Evicting, error) {
	m := Evicting{Node: master.Options().Addr}
	pipe := master.Pipeline()
	server, memory, stats := pipe.Info(ctx, "server"), pipe.Info(ctx, "memory"), pipe.Info(ctx, "stats")
	var self *redis.ClientInfoCmd
	if m.Node == failoverName {
		m.Node, self = "the sentinels' master", pipe.ClientInfo(ctx)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	if err := memory.Err(); err != nil {
		if refused := redis.Error(nil); errors.As(err, &refused) && redis.HasErrorPrefix(err, "NOPERM") {
			return m, nil
		}
		return m, err
	}
	if self != nil && self.Err() == nil && self.Val().LAddr != "" {
		m.Node = self.Val().LAddr
	}
	fields := infoFields(server.Val() + memory.Val() + stats.Val())
	m.version = fields["redis_version"]
	m.Policy = fields["maxmemory_policy"]
	m.MaxMemory, _ = strconv.ParseInt(fields["maxmemory"], 10, 64)
	m.Evicted, _ = strconv.ParseInt(fields["evicted_keys"], 10, 64)
	return m, nil
}

// infoFields parses a reply to INFO.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}
