package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// client opens a client that closes when the test ends.
func client(t *testing.T, o *redis.Options) *redis.Client {
	t.Helper()
	c := redis.NewClient(o)
	t.Cleanup(func() {
		assert.NoError(t, c.Close())
	})
	return c
}

func set(t *testing.T, c *redis.Client, key string) {
	t.Helper()
	require.NoError(t, c.Set(t.Context(), key, "1", 0).Err())
}

func TestRedis_TwoTests_SeparateDatabases(t *testing.T) {
	t.Parallel()
	a, b := client(t, Redis(t)), client(t, Redis(t))
	set(t, a, "mine")
	n, err := b.Exists(t.Context(), "mine").Result()
	assert.True(t, err == nil && n == 0, "one test's key shows in the other's database (%d, %v)", n, err)
}

func TestRedis_TestEnds_DatabaseEmptiedAndReleased(t *testing.T) {
	t.Parallel()
	server := RedisPrivate(t)
	e := newEnv(source{getenv: func(name string) string {
		return map[string]string{EnvRedis: server.URL}[name]
	}})
	var database int
	t.Run("the test", func(t *testing.T) {
		o := e.logical(t)
		database = o.DB
		set(t, client(t, o), "left behind")
	})
	o := server.Options()
	o.DB = database
	n, err := client(t, o).DBSize(t.Context()).Result()
	assert.True(t, err == nil && n == 0, "database %d holds %d keys (%v)", database, n, err)
	n, err = client(t, server.Options()).Exists(t.Context(), leaseKey+"1").Result()
	assert.True(t, err == nil && n == 0, "the lease is still there (%d, %v)", n, err)
}

func TestRedis_ForeignKeys_NeverFlushed(t *testing.T) {
	t.Parallel()
	server := RedisPrivate(t)
	o := server.Options()
	o.DB = 1
	theirs := client(t, o)
	set(t, theirs, "theirs")
	r := Must(t).Get(newRedisEnv(t.Context(), backend{url: server.URL}))
	l := Must(t).Get(r.lease(t.Context()))
	assert.True(t, l.database != 1, "a database with foreign keys was leased")
	n, err := theirs.Exists(t.Context(), "theirs").Result()
	assert.True(t, err == nil && n == 1, "their key is gone (%d, %v)", n, err)
}

func TestRedis_KilledRun_DatabaseEmptyForNext(t *testing.T) {
	t.Parallel()
	server := RedisPrivate(t)
	r := Must(t).Get(newRedisEnv(t.Context(), backend{url: server.URL}))
	r.databases = 2 // only database 1
	Must(t).Get(r.lease(t.Context()))
	o := server.Options()
	o.DB = 1
	set(t, client(t, o), "left behind")
	// This has the effect of a killed run whose lease has expired.
	require.NoError(t, client(t, server.Options()).Del(t.Context(), leaseKey+"1").Err())
	Must(t).Get(r.lease(t.Context()))
	n, err := client(t, o).DBSize(t.Context()).Result()
	assert.True(t, err == nil && n == 0, "the database still holds %d keys (%v)", n, err)
}

func TestRedis_AllDatabasesTaken_Waits(t *testing.T) {
	t.Parallel()
	server := RedisPrivate(t)
	r := Must(t).Get(newRedisEnv(t.Context(), backend{url: server.URL}))
	r.databases = 2 // only database 1
	first, err := r.lease(t.Context())
	require.NoError(t, err)
	short, cancel := context.WithTimeout(t.Context(), 2*leaseEvery)
	defer cancel()
	_, err = r.lease(short)
	require.ErrorIs(t, err, context.DeadlineExceeded, "leased a taken database")
	waiting := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := r.lease(ctx)
		waiting <- err
	}()
	require.NoError(t, r.release(t.Context(), first))
	err = <-waiting
	assert.NoError(t, err)
}
