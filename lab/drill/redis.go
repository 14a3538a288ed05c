package drill

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

const (
	// redisName is the name of the master in the sentinel's configuration.
	redisName = "drill"

	// redisDownAfter is the time after which the sentinel would replace the master. It is longer than any fault, so
	// that only the drill lets it do so.
	redisDownAfter = time.Hour

	// redisPassword is the password of the servers. They listen only on loopback.
	redisPassword = "drill-redis"
)

// cache is a master of Redis and its replica, which a sentinel watches. It belongs to one goroutine.
type cache struct {
	master, replica, sentinel *localstack.Redis
}

// outage is a time in which Redis did not decide.
type outage struct {
	do   Action
	from time.Time // it answered until then
	hit  time.Time // it did not answer from then on
	to   time.Time // it could answer again
}

func startCache(ctx context.Context, root string) (_ *cache, err error) {
	c := &cache{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	start := func(name string, mode localstack.RedisMode, extra ...string) (*localstack.Redis, error) {
		return localstack.StartRedis(ctx, localstack.RedisConfig{
			Dir: filepath.Join(root, name), Mode: mode, Password: redisPassword, Extra: extra,
		})
	}
	const prompt, ping = "repl-diskless-sync-delay 0", "repl-ping-replica-period 1"
	if c.master, err = start("redis-1", localstack.RedisStandalone, prompt, ping); err != nil {
		return nil, err
	}
	if c.replica, err = start("redis-2", localstack.RedisStandalone, prompt, ping); err != nil {
		return nil, err
	}
	if err := c.follow(ctx); err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(c.master.Addr())
	c.sentinel, err = start("sentinel", localstack.RedisSentinel,
		fmt.Sprintf("sentinel monitor %s %s %s 1", redisName, host, port),
		fmt.Sprintf("sentinel auth-pass %s %s", redisName, redisPassword),
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", redisName, redisDownAfter.Milliseconds()),
	)
	return c, err
}

// url returns the URL of the service, which asks the sentinel for the master.
func (c *cache) url() string {
	return (&url.URL{
		Scheme: "redis+sentinel", User: url.UserPassword("", redisPassword),
		Host: c.sentinel.Addr(), Path: "/" + redisName,
		RawQuery: url.Values{"sentinel_password": {redisPassword}}.Encode(),
	}).String()
}

// away keeps Redis from deciding while meanwhile runs.
func (c *cache) away(ctx context.Context, do Action, meanwhile func() error) (outage, error) {
	if do == FailoverRedis {
		if err := await(ctx, "the replica has what the master has", c.replicated); err != nil {
			return outage{}, err
		}
	}
	o := outage{do: do, from: time.Now()}
	err := c.harm(ctx, do)
	if o.hit = time.Now(); err != nil {
		return o, err
	}
	err = errors.Join(meanwhile(), c.heal(ctx, do))
	o.to = time.Now()
	return o, err
}

func (c *cache) harm(ctx context.Context, do Action) error {
	switch do {
	case KillRedis, FailoverRedis:
		return c.master.Kill()
	case RefuseWrites:
		return command(ctx, c.master, "CONFIG", "SET", "min-replicas-to-write", "9")
	default:
		return c.master.Pause()
	}
}

func (c *cache) heal(ctx context.Context, do Action) error {
	switch do {
	case KillRedis:
		// A server that was a replica has a file with the data of its last copy. The master would load these old
		// levels, and no instance would notice that they are old.
		if err := os.RemoveAll(filepath.Join(c.master.Dir(), "dump.rdb")); err != nil {
			return fmt.Errorf("empty redis: %w", err)
		}
		return c.master.Start(ctx)
	case FailoverRedis:
		return c.failover(ctx)
	case RefuseWrites:
		return command(ctx, c.master, "CONFIG", "SET", "min-replicas-to-write", "0")
	default:
		return c.master.Resume()
	}
}

// failover lets the sentinel promote the replica of a master that is dead. The dead master comes back as the replica.
func (c *cache) failover(ctx context.Context) error {
	err := await(ctx, "the sentinel promotes the replica", func(ctx context.Context) error {
		return command(ctx, c.sentinel, "SENTINEL", "FAILOVER", redisName)
	})
	if err != nil {
		return err
	}
	c.master, c.replica = c.replica, c.master
	err = await(ctx, "the sentinel reports the new master", func(ctx context.Context) error {
		client := redis.NewSentinelClient(options(c.sentinel))
		defer func() { _ = client.Close() }()
		at, err := client.GetMasterAddrByName(ctx, redisName).Result()
		if err == nil && net.JoinHostPort(at[0], at[1]) != c.master.Addr() {
			err = fmt.Errorf("it reports %v", at)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := c.replica.Start(ctx); err != nil {
		return err
	}
	return c.follow(ctx)
}

// follow lets the replica copy the master.
func (c *cache) follow(ctx context.Context) error {
	host, port, _ := net.SplitHostPort(c.master.Addr())
	return command(ctx, c.replica, "REPLICAOF", host, port)
}

// replicated returns an error if the replica has not copied the master.
func (c *cache) replicated(ctx context.Context) error {
	info, err := c.replica.Info(ctx, "replication")
	if err == nil && !strings.Contains(info, "master_link_status:up") {
		err = errors.New("the link is down")
	}
	return err
}

func (c *cache) stop() error {
	var errs error
	for _, server := range []*localstack.Redis{c.sentinel, c.replica, c.master} {
		if server != nil {
			errs = errors.Join(errs, server.Kill())
		}
	}
	return errs
}

func options(r *localstack.Redis) *redis.Options {
	return &redis.Options{Addr: r.Addr(), Password: redisPassword}
}

// command sends a command to a server.
func command(ctx context.Context, r *localstack.Redis, words ...any) error {
	client := redis.NewClient(options(r))
	defer func() { _ = client.Close() }()
	return client.Do(ctx, words...).Err()
}
