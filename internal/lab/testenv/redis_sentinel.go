package testenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
)

// sentinelMaster is the master's name in the sentinels' configuration. sentinelQuorum is
// the number of sentinels that must agree that the master is down.
const (
	sentinelMaster = "main"
	sentinels      = 3
	sentinelQuorum = 2
)

// RedisSentinels is a master and a replica for one test, which three sentinels watch. If the master is down, the
// sentinels promote the replica.
type RedisSentinels struct {
	URL       string
	Master    *RedisServer // the master at the start
	Replica   *RedisServer
	Sentinels []*RedisServer

	g *group
}

// RedisSentinelsPrivate starts the servers for this test from local binaries.
func RedisSentinelsPrivate(t testing.TB) *RedisSentinels {
	t.Helper()
	g := newGroup(t)
	data := g.start(2, localstack.RedisConfig{Extra: []string{"repl-diskless-sync-delay 0", "repl-ping-replica-period 1"}})
	s := &RedisSentinels{Master: data[0], Replica: data[1], g: g}
	host, port, _ := net.SplitHostPort(s.Master.Addr)
	g.do(s.Replica.client(), "REPLICAOF", host, port)
	s.awaitReplica()

	s.Sentinels = g.start(sentinels, localstack.RedisConfig{Mode: localstack.RedisSentinel, Extra: []string{
		fmt.Sprintf("sentinel monitor %s %s %s %d", sentinelMaster, host, port, sentinelQuorum),
		fmt.Sprintf("sentinel auth-pass %s %s", sentinelMaster, g.password),
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", sentinelMaster, failureTimeout.Milliseconds()),
		fmt.Sprintf("sentinel failover-timeout %s %d", sentinelMaster, 5*failureTimeout.Milliseconds()),
		"sentinel sentinel-pass " + g.password,
	}})
	s.URL = (&url.URL{
		Scheme: "redis+sentinel", User: url.UserPassword("", g.password), Host: addresses(s.Sentinels), Path: "/" + sentinelMaster,
		RawQuery: url.Values{"sentinel_password": {g.password}}.Encode(),
	}).String()
	for _, watcher := range s.Sentinels {
		g.await("every sentinel lists the others and the replica", func(ctx context.Context) error {
			return s.ready(ctx, watcher)
		})
	}
	return s
}

func (s *RedisSentinels) awaitReplica() {
	s.g.t.Helper()
	s.g.await("the replica has copied the master", func(ctx context.Context) error {
		info, err := s.Replica.client().Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = errors.New("the link is down")
		}
		return err
	})
}

func (s *RedisSentinels) ready(ctx context.Context, watcher *RedisServer) error {
	c := redis.NewSentinelClient(watcher.Options())
	defer func() { _ = c.Close() }()
	m, err := c.Master(ctx, sentinelMaster).Result()
	if err != nil {
		return err
	}
	for field, want := range map[string]string{
		"num-slaves": "1", "num-other-sentinels": strconv.Itoa(sentinels - 1), "flags": "master",
	} {
		if m[field] != want {
			return fmt.Errorf("%s is %q", field, m[field])
		}
	}
	return nil
}

// Failover makes the sentinels swap a healthy master and its replica, as an operator would for maintenance.
func (s *RedisSentinels) Failover() {
	s.g.t.Helper()
	s.g.await("a sentinel begins the failover", func(ctx context.Context) error {
		c := redis.NewSentinelClient(s.Sentinels[0].Options())
		defer func() { _ = c.Close() }()
		return c.Failover(ctx, sentinelMaster).Err()
	})
}

// AwaitMaster waits until the sentinels agree that want is the master.
func (s *RedisSentinels) AwaitMaster(want *RedisServer) {
	s.g.t.Helper()
	for _, watcher := range s.Sentinels {
		s.g.await("the sentinel reports the new master", func(ctx context.Context) error {
			c := redis.NewSentinelClient(watcher.Options())
			defer func() { _ = c.Close() }()
			addr, err := c.GetMasterAddrByName(ctx, sentinelMaster).Result()
			if err == nil && net.JoinHostPort(addr[0], addr[1]) != want.Addr {
				err = fmt.Errorf("it reports %v", addr)
			}
			return err
		})
	}
}

// SentinelFailovers returns the ways in which a test can make the sentinels replace the master. The key is the way's
// name.
func SentinelFailovers() map[string]func(*RedisSentinels) {
	return map[string]func(*RedisSentinels){
		"killed": func(s *RedisSentinels) { s.Master.Kill() },
		"frozen": func(s *RedisSentinels) { s.Master.Pause() },
		"wanted": (*RedisSentinels).Failover,
	}
}
