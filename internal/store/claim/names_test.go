package claim

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func TestNames_OneIsFirst(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	shared := []*Names{open(t, url), open(t, url)}
	alone, away := New(nil), open(t, url)
	require.NoError(t, away.store.Close())
	for what, names := range map[string][]*Names{"redis": shared, "process": {alone, alone}, "redis away": {away}} {
		var firsts atomic.Int64
		var all errgroup.Group
		for i := range 20 {
			n := names[i%len(names)]
			all.Go(func() error {
				held, first := n.Claim(t.Context(), "once:{t}a", "mine", time.Minute)
				if first {
					firsts.Add(1)
				} else if held != "mine" {
					return fmt.Errorf("held %q", held)
				}
				return nil
			})
		}
		err := all.Wait()
		assert.True(t, err == nil && firsts.Load() == 1, "%s: %d are first, %v", what, firsts.Load(), err)
		n := names[0]
		n.Put(t.Context(), "once:{t}a", "done", time.Minute)
		if held, first := n.Claim(t.Context(), "once:{t}a", "mine", time.Minute); first || held != "done" {
			t.Errorf("%s: %q, %t", what, held, first)
		}
		n.Drop(t.Context(), "once:{t}a")
		if _, first := n.Claim(t.Context(), "once:{t}a", "mine", time.Millisecond); !first {
			t.Errorf("%s: not forgotten", what)
		}
		ended := func() bool {
			_, first := n.Claim(t.Context(), "once:{t}a", "mine", time.Minute)
			return first
		}
		for deadline := time.Now().Add(5 * time.Second); !ended(); {
			require.False(t, time.Now().After(deadline), "%s: does not end", what)
		}
	}
}

func TestNames_Process_Bounded(t *testing.T) {
	t.Parallel()
	n := New(nil)
	for i := range localMax + 10 {
		n.Claim(t.Context(), fmt.Sprint(i), "", time.Minute)
	}
	assert.True(t, len(n.local) <= localMax, "%d names", len(n.local))
}

// Redis may lose a name. The process that has claimed it knows it, and stores it again.
func TestNames_RedisLosesThem_TheProcessKnowsItsOwn(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	own, other := open(t, server.URL), open(t, server.URL)
	_, first := own.Claim(t.Context(), "once:{t}a", "?", time.Minute)
	require.True(t, first)
	own.Put(t.Context(), "once:{t}a", "done", time.Minute)
	require.NoError(t, testenv.CloseAtEnd(t, redis.NewClient(server.Options())).FlushAll(t.Context()).Err())
	for _, n := range []*Names{own, other} {
		held, first := n.Claim(t.Context(), "once:{t}a", "?", time.Minute)
		assert.True(t, !first && held == "done", "%q, %t", held, first)
	}
	own.Drop(t.Context(), "once:{t}a")
	_, first = other.Claim(t.Context(), "once:{t}a", "?", time.Minute)
	assert.True(t, first)
}

func open(t *testing.T, url string) *Names {
	t.Helper()
	store := testenv.Must(t).Get(redisstore.Open(url, redisstore.Config{Budget: testenv.Patience}))
	t.Cleanup(func() {
		if err := store.Stop(t.Context()); err != nil {
			t.Log(err)
		}
		_ = store.Close() // one of the stores is already closed
	})
	return New(store)
}
