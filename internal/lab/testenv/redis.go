package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// defaultRedisDatabases is the assumed number of databases of a server that forbids CONFIG.
	defaultRedisDatabases = 16

	// leaseTTL is the time after which the databases of a killed run are free again. A process renews its leases
	// several times in that time.
	leaseTTL   = 20 * time.Minute
	renewEvery = leaseTTL / 5

	// leaseEvery is the interval at which a test tries to lease a database if all databases are in use.
	leaseEvery = 50 * time.Millisecond

	// Database 0 contains the registry. It has one lease key for each database in use, and the set of the databases
	// that were empty at their first lease. A database that is not in this set may contain keys of other programs, and
	// is never flushed.
	leaseKey = "quotasvc-testenv:lease:"
	oursKey  = "quotasvc-testenv:ours"
)

// Redis returns the options of a client of the test's own logical database. The database is empty at the start and is
// emptied when the test ends. The server's scripts, functions, configuration and channels are shared with other
// tests.
func Redis(t testing.TB) *redis.Options {
	t.Helper()
	shared.requireMain(t)
	return shared.logical(t)
}

// RedisURL leases a database like Redis, and returns its URL.
func RedisURL(t testing.TB) string {
	t.Helper()
	o := Redis(t)
	return redisURL(o)
}

func (e *env) logical(t testing.TB) *redis.Options {
	t.Helper()
	r, err := e.redis.get()
	require.NoError(t, err, "testenv: Redis")
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	lease, err := r.lease(ctx)
	require.NoError(t, err, "testenv: Redis database")
	ended, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		r.renew(lease, stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
		defer cancel()
		assert.NoError(t, r.release(ctx, lease), "testenv: Redis database")
	})
	return r.options(lease.database)
}

// redisEnv is the server with the tests' logical databases.
type redisEnv struct {
	base      *redis.Options // options for database 0
	databases int
}

type lease struct {
	database int
	token    string
}

func (e *env) startRedis(ctx context.Context) (*redisEnv, error) {
	b, err := e.source.redis(ctx)
	if err != nil {
		return nil, err
	}
	if b.stop != nil {
		e.onStop(b.stop)
	}
	return newRedisEnv(ctx, b)
}

func newRedisEnv(ctx context.Context, b backend) (*redisEnv, error) {
	base, err := redis.ParseURL(b.url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvRedis, err)
	}
	base.DB = 0
	r := &redisEnv{base: base, databases: defaultRedisDatabases}
	err = r.with(0, func(c *redis.Client) error {
		if err := c.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("reach %s: %w", base.Addr, err)
		}
		// Managed servers forbid CONFIG. Most of them have the default number of databases.
		if config, err := c.ConfigGet(ctx, "databases").Result(); err == nil {
			if n, err := strconv.Atoi(config["databases"]); err == nil {
				r.databases = n
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// lease reserves a logical database. It waits if all are in use.
func (r *redisEnv) lease(ctx context.Context) (lease, error) {
	tick := time.NewTicker(leaseEvery)
	defer tick.Stop()
	l := lease{token: rand.Text()}
	for {
		for l.database = 1; l.database < r.databases; l.database++ {
			ok, err := r.take(ctx, l)
			if err != nil {
				return lease{}, err
			}
			if ok {
				return l, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return lease{}, fmt.Errorf("all %d databases of %s are in use: %w", r.databases-1, r.base.Addr, ctx.Err())
		}
	}
}

// take tries to lease one database and empties it. If the database contains keys of other programs, take releases it.
func (r *redisEnv) take(ctx context.Context, l lease) (ok bool, err error) {
	key, member := leaseKey+strconv.Itoa(l.database), strconv.Itoa(l.database)
	err = r.with(0, func(registry *redis.Client) error {
		ok, err = registry.SetNX(ctx, key, l.token, leaseTTL).Result()
		if err != nil || !ok {
			return err
		}
		ours, err := registry.SIsMember(ctx, oursKey, member).Result()
		if err != nil {
			return err
		}
		return r.with(l.database, func(c *redis.Client) error {
			if ours {
				return c.FlushDB(ctx).Err()
			}
			size, err := c.DBSize(ctx).Result()
			if err != nil {
				return err
			}
			if size > 0 {
				ok = false
				return registry.Del(ctx, key).Err()
			}
			return registry.SAdd(ctx, oursKey, member).Err()
		})
	})
	return ok, err
}

// renew renews a lease until stop is closed. After a failed renewal, at least three more attempts follow before the
// lease expires.
func (r *redisEnv) renew(l lease, stop <-chan struct{}) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
			_ = r.with(0, func(c *redis.Client) error {
				return c.PExpire(ctx, leaseKey+strconv.Itoa(l.database), leaseTTL).Err()
			})
			cancel()
		}
	}
}

// release empties a database and releases it. It fails if the lease has expired, because another test may then use
// the database.
func (r *redisEnv) release(ctx context.Context, l lease) error {
	key := leaseKey + strconv.Itoa(l.database)
	return r.with(0, func(registry *redis.Client) error {
		holder, err := registry.Get(ctx, key).Result()
		if errors.Is(err, redis.Nil) || (err == nil && holder != l.token) {
			return fmt.Errorf("the lease of database %d has expired: it was not renewed for %v", l.database, leaseTTL)
		}
		if err != nil {
			return err
		}
		if err := r.with(l.database, func(c *redis.Client) error { return c.FlushDB(ctx).Err() }); err != nil {
			return err
		}
		return registry.Del(ctx, key).Err()
	})
}

// with calls the function `do` with a short-lived client of one database.
func (r *redisEnv) with(database int, do func(*redis.Client) error) (err error) {
	c := redis.NewClient(r.options(database))
	defer func() { err = errors.Join(err, c.Close()) }()
	return do(c)
}

// options returns a new copy of the options for a database, because clients write defaults into their options.
func (r *redisEnv) options(database int) *redis.Options {
	o := *r.base
	o.DB = database
	return &o
}
