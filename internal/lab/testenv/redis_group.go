package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

const (
	// groupTimeout is the time limit for starting a cluster or a set of sentinels, and for each change in it. On a
	// busy machine, the nodes take seconds to exchange their state.
	groupTimeout = 90 * time.Second

	// groupPoll is the interval for polling the state of a cluster or of sentinels.
	groupPoll = 20 * time.Millisecond

	// failureTimeout is the time after which a node that does not answer counts as failed. Production uses 15 or 30
	// s. With less than 3 s, healthy nodes count as failed on a busy machine.
	failureTimeout = 3 * time.Second

	// calmTimeout replaces failureTimeout in tests in which no node should fail.
	calmTimeout = 2 * time.Minute
)

// group is a set of Redis processes with the same password.
type group struct {
	t        testing.TB
	dir      string
	password string
	started  int // number of processes
}

func newGroup(t testing.TB) *group {
	t.Helper()
	shared.requireBinaries(t)
	return &group{t: t, dir: t.TempDir(), password: rand.Text()}
}

// start starts n processes. They stop when the test ends.
func (g *group) start(n int, cfg localstack.RedisConfig) []*RedisServer {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	servers := make([]*RedisServer, n)
	all, ctx := errgroup.WithContext(ctx)
	for i := range servers {
		cfg := cfg
		cfg.Dir, cfg.Password = filepath.Join(g.dir, fmt.Sprintf("%d-%d", cfg.Mode, g.started)), g.password
		g.started++
		cfg.Search = &shared.source.search
		all.Go(func() error {
			r, err := localstack.StartRedis(ctx, cfg)
			if err == nil {
				servers[i] = newRedisServer(g.t, r)
			}
			return err
		})
	}
	err := all.Wait()
	for _, s := range servers {
		if s != nil {
			g.t.Cleanup(s.Kill)
		}
	}
	require.NoError(g.t, err, "testenv: private Redis servers need local binaries")
	return servers
}

// await waits until done returns nil. It fails the test after groupTimeout.
func (g *group) await(what string, done func(ctx context.Context) error) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), groupTimeout)
	defer cancel()
	tick := time.NewTicker(groupPoll)
	defer tick.Stop()
	for {
		err := done(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			g.t.Fatalf("testenv: within %s this did not happen: %s (%v)", groupTimeout, what, err)
		}
	}
}

// client returns a client of one process. The client is closed when the test ends.
func (s *RedisServer) client() *redis.Client {
	c := redis.NewClient(s.Options())
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// addresses returns the servers' addresses, separated by commas, as in a URL.
func addresses(servers []*RedisServer) string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.Addr
	}
	return strings.Join(all, ",")
}

// do runs an administrative command and returns its reply. If the command fails, do fails the test.
func (g *group) do(c *redis.Client, command ...any) any {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	reply, err := c.Do(ctx, command...).Result()
	require.True(g.t, err == nil || errors.Is(err, redis.Nil), "testenv: %v: %v", command, err)
	return reply
}
