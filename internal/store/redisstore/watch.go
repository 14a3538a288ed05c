package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/maphash"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

const (
	// HeldFor is the longest time by which a held value may be out of date. A value counts as held only while this
	// process knows all changes on the server that are older than HeldFor.
	HeldFor = 25 * time.Millisecond

	// beatEvery is the pause between two checks whether this process receives all announcements. The checks are made
	// only while held values are in use.
	beatEvery = 10 * time.Millisecond

	// idleAfter is the time after which the checks stop if held values are not used.
	idleAfter = time.Second

	// rereadAfter bounds how long a value counts as held. After this time it must be read again.
	rereadAfter = 5 * time.Minute // a whole number of seconds

	// DefaultWatchMax bounds the keys that are watched. A key takes about 35 bytes in this process and 100 bytes in
	// Redis. For 200,000 keys the maps would take twice the memory, because the size of a map is a power of two.
	DefaultWatchMax = 150_000

	// watchRetry is the pause before the watch connects again.
	watchRetry = time.Second

	watchStripes = 64

	second = int64(time.Second / time.Microsecond)

	// newsChannel is the channel on which Redis announces changed keys.
	newsChannel = "__redis__:invalidate"
)

// Watch tracks which of the values that this process has read are unchanged in Redis. Redis remembers the keys that
// were read and announces their changes on a separate connection (CLIENT TRACKING).
//
// The process also sends messages to itself through Redis. If such a message arrives on the connection of the
// announcements, both connections lead to the same server, and all earlier announcements have arrived. So a held
// value is out of date by at most HeldFor.
//
// There is no watch on a cluster, and none on a server that refuses the commands. Then no value counts as held, and
// every value is read from Redis.
type Watch struct {
	store   *Store
	client  *redis.Client // for the announcements alone
	channel string        // for this process's messages to itself
	seed    maphash.Seed
	ended   chan struct{}

	news      atomic.Pointer[redis.PubSub]
	connected atomic.Int64 // id of the connection on the server; it may not be subscribed yet
	target    atomic.Int64 // id of a subscribed connection; 0: no connection is subscribed
	heard     atomic.Int64 // all changes before this time are known, in µs
	wanted    atomic.Int64 // when a held value was last used, in µs
	stamps    atomic.Int64

	stripes [watchStripes]watchStripe
}

// watchStripe is a part of the watched keys, stored by their hashes. If two keys have the same hash, a change of one
// key counts as a change of both keys. A read of one key would also count as a read of the other key. With
// DefaultWatchMax keys the probability of equal hashes is 1 in 10^9, and each process has another seed.
type watchStripe struct {
	mu  sync.Mutex
	all map[uint64]watched
}

// watched is a key whose value was read.
type watched struct {
	stamp uint32 // low bits of the stamp of the newest read; overlapping reads of a key are not 2^32 reads apart
	at    uint32 // when the value was kept, in s; 0: the value is being read
}

// newWatch starts a watch on the server of client. It returns nil if the server cannot be watched.
func newWatch(s *Store, client redis.UniversalClient) *Watch {
	single, ok := client.(*redis.Client)
	if !ok {
		return nil
	}
	w := &Watch{store: s, channel: "quotasvc:watch:" + rand.Text(), seed: maphash.MakeSeed(), ended: make(chan struct{})}
	w.forgetAll()
	opts := *single.Options()
	opts.Protocol, opts.PoolSize, opts.MinIdleConns = 2, 1, 0 // only protocol 2 delivers announcements as messages
	opts.OnConnect = w.onConnect
	w.client = redis.NewClient(&opts)
	go w.run(s.stopping)
	return w
}

// stop waits until the goroutines have ended. The caller has cancelled their context.
func (w *Watch) stop() {
	w.reconnect() // this ends the wait for announcements
	<-w.ended
}

// onConnect stores the id of a new connection. It forgets all keys, because announcements on the previous connection
// may be lost.
func (w *Watch) onConnect(ctx context.Context, conn *redis.Conn) error {
	w.disconnected()
	id, err := conn.ClientID(ctx).Result()
	w.connected.Store(id)
	return err
}

// reconnect closes the connection. Then run opens a new connection.
func (w *Watch) reconnect() {
	if news := w.news.Swap(nil); news != nil {
		w.disconnected()
		_ = news.Close()
	}
}

func (w *Watch) disconnected() {
	w.target.Store(0)
	w.heard.Store(0)
	w.forgetAll()
}

// run is the goroutine that receives announcements. It ends with ctx.
func (w *Watch) run(ctx context.Context) {
	defer close(w.ended)
	defer func() { _ = w.client.Close() }()
	var beating sync.WaitGroup
	defer beating.Wait()
	beating.Go(func() { w.beat(ctx) })
	for {
		err := w.hear(ctx)
		w.disconnected()
		if ctx.Err() != nil {
			return
		}
		w.store.cfg.Log.Debug("changes in redis are not announced; values are read each time", "error", err)
		if !backoff.Sleep(ctx, watchRetry) {
			return
		}
	}
}

// hear receives announcements until the connection fails.
func (w *Watch) hear(ctx context.Context) error {
	news := w.client.Subscribe(ctx, newsChannel, w.channel)
	w.news.Store(news)
	defer func() { _ = news.Close() }()
	subscribed := 0
	for {
		message, err := news.ReceiveTimeout(ctx, watchRetry)
		var late net.Error
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &late) && late.Timeout():
			continue
		case err != nil: // also if all keys were deleted at once (FLUSHALL): that message has no list of keys
			return err
		}
		switch m := message.(type) {
		case *redis.Subscription:
			if subscribed++; subscribed%2 == 0 { // on both channels
				w.target.Store(w.connected.Load())
			}
		case *redis.Message:
			w.take(m)
		}
	}
}

func (w *Watch) take(m *redis.Message) {
	if m.Channel == w.channel {
		if sent, err := strconv.ParseInt(m.Payload, 10, 64); err == nil && w.target.Load() != 0 {
			w.heard.Store(sent)
		}
		return
	}
	for _, key := range m.PayloadSlice {
		w.Forget(key)
	}
}

// beat sends the messages to this process while held values are in use.
func (w *Watch) beat(ctx context.Context) {
	backoff.Every(ctx, beatEvery, func(time.Time) {
		now := w.store.clock.micros()
		if w.target.Load() == 0 || now-w.wanted.Load() > idleAfter.Microseconds() || w.store.AnyAway() {
			return
		}
		within, cancel := context.WithTimeout(ctx, w.store.cfg.Budget/2)
		defer cancel()
		_ = w.store.client.Publish(within, w.channel, strconv.FormatInt(now, 10)).Err() // if the message does not arrive, no value counts as held
	})
}

// Holds reports whether this process holds the values of all these keys: none is out of date by more than HeldFor. A
// nil Watch returns false.
func (w *Watch) Holds(keys ...string) bool {
	if w == nil {
		return false
	}
	now := w.store.clock.micros()
	if now-w.wanted.Load() > idleAfter.Microseconds()/2 {
		w.wanted.Store(now)
	}
	if now-w.heard.Load() > HeldFor.Microseconds() {
		return false
	}
	for _, key := range keys {
		if !w.holds(key, now) {
			return false
		}
	}
	return true
}

func (w *Watch) holds(key string, now int64) bool {
	s, hash := w.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[hash]
	return e.at != 0 && now/second-int64(e.at) < int64(rereadAfter/time.Second)
}

// Forget ends the watch on a key, because its value has changed or this process no longer keeps the value.
func (w *Watch) Forget(key string) {
	if w == nil {
		return
	}
	s, hash := w.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, hash)
}

// begin is called before keys are read. It returns a stamp for the calls of reading and kept that follow. It returns 0
// if the keys cannot be watched.
func (w *Watch) begin() (stamp int64) {
	if w == nil || w.target.Load() == 0 {
		return 0
	}
	return w.stamps.Add(1)
}

// reading records that a read of key begins, with this stamp.
func (w *Watch) reading(stamp int64, key string) {
	s, hash := w.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known := s.all[hash]
	if !known && len(s.all) >= w.store.cfg.WatchMax/watchStripes {
		for other := range s.all { // any other key
			delete(s.all, other)
			break
		}
	}
	e.stamp = uint32(stamp)
	s.all[hash] = e
}

// kept records that this process keeps the value of key that it read with this stamp. The value counts as held if no
// change was announced after the read began, and if no other read of the key has begun.
func (w *Watch) kept(stamp int64, key string) {
	s, hash := w.stripe(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known := s.all[hash]
	switch {
	case !known:
	case e.stamp == uint32(stamp):
		e.at = uint32(w.store.clock.micros() / second)
		s.all[hash] = e
	default: // two reads overlapped, and this process may now keep the older value
		delete(s.all, hash)
	}
}

func (w *Watch) forgetAll() {
	for i := range w.stripes {
		s := &w.stripes[i]
		s.mu.Lock()
		s.all = make(map[uint64]watched)
		s.mu.Unlock()
	}
}

func (w *Watch) stripe(key string) (s *watchStripe, hash uint64) {
	hash = maphash.String(w.seed, key)
	return &w.stripes[hash%watchStripes], hash
}

// startTracking begins a pipeline whose keys Redis must remember. If watch is false, it does nothing and returns nil.
func (s *Store) startTracking(ctx context.Context, pipe redis.Pipeliner, watch bool) *redis.StatusCmd {
	if !watch {
		return nil
	}
	cmd := redis.NewStatusCmd(ctx, "client", "tracking", "on", "redirect", s.watch.target.Load(), "optin")
	_ = pipe.Process(ctx, cmd) // queues; it cannot fail
	return cmd
}

// endTracking reports whether Redis remembers the keys of a pipeline. If the server does not know the connection of
// the watch, that connection leads to another server. Then the watch reconnects.
func (s *Store) endTracking(cmd *redis.StatusCmd) bool {
	if cmd == nil {
		return false
	}
	err := cmd.Err()
	if redis.HasErrorPrefix(err, "ERR") || redis.HasErrorPrefix(err, "NOPERM") {
		s.watch.reconnect()
	}
	return err == nil
}

// caching makes Redis remember the keys of the next command of a pipeline.
func caching(ctx context.Context, pipe redis.Pipeliner) {
	_ = pipe.Process(ctx, redis.NewStatusCmd(ctx, "client", "caching", "yes"))
}
