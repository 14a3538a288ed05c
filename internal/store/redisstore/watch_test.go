package redisstore

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// watcher returns a store, and a client that plays the role of another process.
func watcher(t *testing.T) (*Store, *redis.Client) {
	t.Helper()
	return watcherOn(t, testenv.Redis(t))
}

func watcherOn(t *testing.T, options *redis.Options) (*Store, *redis.Client) {
	t.Helper()
	const patience = testenv.Patience
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
	options.ContextTimeoutEnabled = true
	s, other := New(redis.NewClient(options), Config{Budget: patience}), redis.NewClient(options)
	t.Cleanup(func() {
		require.NoError(t, s.Stop(context.Background()))
		require.NoError(t, s.Close())
		require.NoError(t, other.Close())
	})
	testenv.Eventually(t, func() bool { return s.Watch().target.Load() != 0 }, "announcements are heard")
	return s, other
}

// read reads key and keeps its value.
func read(t *testing.T, s *Store, key string) string {
	t.Helper()
	reads := testenv.Must(t).Get(NewReads(HashTag(key), []string{key}))
	require.NoError(t, s.Read(t.Context(), reads))
	s.Kept(reads)
	return reads.Values[0]
}

// hold reads key until its value is held: at the first read Redis may not yet send announcements to the watch.
func hold(t *testing.T, s *Store, key string) {
	t.Helper()
	testenv.Eventually(t, func() bool {
		read(t, s, key)
		return s.Watch().Holds(key)
	}, "the value is held")
}

func (w *Watch) eventually(t *testing.T, held bool, key string) {
	t.Helper()
	testenv.Eventually(t, func() bool { return w.Holds(key) == held }, "held: ", held)
}

func TestWatch_Read_HeldUntilItChanges(t *testing.T) {
	t.Parallel()
	s, other := watcher(t)
	for name, change := range map[string]func(key string) error{
		"set":     func(key string) error { return other.Set(t.Context(), key, "2", 0).Err() },
		"deleted": func(key string) error { return other.Del(t.Context(), key).Err() },
		"expired": func(key string) error { // Redis may delete the expired key only when a command reads it
			require.NoError(t, other.PExpire(t.Context(), key, time.Millisecond).Err())
			testenv.Eventually(t, func() bool { return other.Exists(t.Context(), key).Val() == 0 }, "it expires")
			return nil
		},
		"set by this": func(key string) error { return s.client.Set(t.Context(), key, "2", 0).Err() },
		"by a script": func(key string) error {
			return other.Eval(t.Context(), "return redis.call('SET', KEYS[1], 3)", []string{key}).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := "w:{" + name + "}"
			require.NoError(t, other.Set(t.Context(), key, "1", 0).Err())
			require.False(t, s.Watch().Holds(key), "before it is read")
			require.Equal(t, "1", read(t, s, key))
			hold(t, s, key)
			require.NoError(t, change(key))
			s.Watch().eventually(t, false, key)
		})
	}
	t.Run("a key that does not exist", func(t *testing.T) {
		require.Empty(t, read(t, s, "w:{none}"))
		hold(t, s, "w:{none}")
		require.NoError(t, other.Set(t.Context(), "w:{none}", "1", 0).Err())
		s.Watch().eventually(t, false, "w:{none}")
	})
	t.Run("everything is deleted", func(t *testing.T) {
		hold(t, s, "w:{all}")
		require.NoError(t, other.FlushDB(t.Context()).Err())
		s.Watch().eventually(t, false, "w:{all}")
	})
}

// If the change of a value is announced while the value is being read, the value is not held.
func TestWatch_ChangedWhileRead_NotHeld(t *testing.T) {
	t.Parallel()
	s, _ := watcher(t)
	w := s.Watch()
	first := w.begin()
	w.reading(first, "k")
	w.Forget("k")
	w.kept(first, "k")
	require.False(t, w.Holds("k"), "announced before it was kept")

	first = w.begin()
	w.reading(first, "k")
	second := w.begin()
	w.reading(second, "k")
	w.kept(second, "k")
	w.kept(first, "k")
	require.False(t, w.Holds("k"), "the older of two values was kept last")
}

// If the connection fails, announcements may be lost. Then no value is held until it is read again.
func TestWatch_ConnectionLost_NothingHeld(t *testing.T) {
	t.Parallel()
	s, other := watcher(t)
	hold(t, s, "w:{a}")
	before := s.Watch().target.Load()
	require.NoError(t, other.ClientKillByFilter(t.Context(), "ID", strconv.FormatInt(before, 10)).Err())
	s.Watch().eventually(t, false, "w:{a}")
	testenv.Eventually(t, func() bool { now := s.Watch().target.Load(); return now != 0 && now != before }, "another connection")
	require.False(t, s.Watch().Holds("w:{a}"))
	hold(t, s, "w:{a}")
}

// A server that hangs sends no messages. Then no value is held.
func TestWatch_ServerHangs_NotHeldAfterHeldFor(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	s, _ := watcherOn(t, server.Options())
	hold(t, s, "w:{a}")
	server.Pause()
	s.Watch().eventually(t, false, "w:{a}") // not held because the last message is too old; no connection fails
	server.Resume()
	s.Watch().eventually(t, true, "w:{a}")
}
