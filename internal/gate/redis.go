package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/lua"
)

// redisCallMax bounds the keys of one command or script call: 256 copies are about 0.5 ms of Redis, so that the buckets'
// scripts between two calls do not wait long.
const redisCallMax = 256

// NewBalanceCache makes a cache that shares copies through Redis. A nil client means local mode: the copies of this process
// are all there is, which is right as long as it is the only one.
func NewBalanceCache(client redis.UniversalClient, cfg CacheConfig) *BalanceCache {
	c := newBalanceCache(cfg)
	if client != nil {
		c.redis = newRedisCopies(client, c.cfg.ScriptStats, c.cfg.KeepFor, c.cfg.Now)
	}
	return c
}

// Stored returns what Redis holds of each key, nil where it holds nothing: a ledger.CopyReader for verification. In local
// mode nothing is stored.
func (c *BalanceCache) Stored(ctx context.Context, keys []ledger.BalanceKey) ([]*ledger.BalanceCopy, error) {
	if c.redis == nil {
		return make([]*ledger.BalanceCopy, len(keys)), nil
	}
	own := make([]balanceKey, len(keys))
	for i, k := range keys {
		own[i] = balanceKey(k)
	}
	return c.redis.get(ctx, own)
}

// redisCopies keeps copies in Redis, shared by all instances. It is safe for concurrent use.
type redisCopies struct {
	client  redis.UniversalClient
	cluster bool // a command's keys must share a slot
	script  *ratelimit.Script
	ttlMax  time.Duration
	now     func() time.Time
}

func newRedisCopies(client redis.UniversalClient, metrics *ratelimit.Metrics, ttlMax time.Duration, now func() time.Time) *redisCopies {
	_, cluster := client.(*redis.ClusterClient)
	return &redisCopies{
		client: client, cluster: cluster, script: ratelimit.NewScript("balances", lua.Balances, metrics), ttlMax: ttlMax, now: now,
	}
}

// get reads the copies of keys, in order; nil stands for none.
func (r *redisCopies) get(ctx context.Context, keys []balanceKey) ([]*ledger.BalanceCopy, error) {
	groups := r.groups(len(keys), func(i int) string { return keys[i].Tenant })
	commands := make([]*redis.SliceCmd, len(groups))
	pipe := r.client.Pipeline()
	for g, group := range groups {
		names := make([]string, len(group))
		for j, i := range group {
			names[j] = keys[i].redisKey()
		}
		commands[g] = pipe.MGet(ctx, names...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read balance copies: %w", err)
	}
	out := make([]*ledger.BalanceCopy, len(keys))
	for g, group := range groups {
		values := commands[g].Val()
		if len(values) != len(group) {
			return nil, fmt.Errorf("read balance copies: %d values for %d keys", len(values), len(group))
		}
		for j, i := range group {
			if text, ok := values[j].(string); ok {
				out[i], _ = decodeCopy(keys[i], text)
			}
		}
	}
	return out, nil
}

// put stores the copies that are newer than what Redis has. failed are those whose fate is unknown; putting them again is
// harmless. Copies that the script refuses are not failed: they would be refused again. refused counts them.
func (r *redisCopies) put(ctx context.Context, copies []*ledger.BalanceCopy) (failed []*ledger.BalanceCopy, refused int, err error) {
	now := r.now()
	groups := r.groups(len(copies), func(i int) string { return copies[i].Tenant })
	calls := make([]ratelimit.Call, len(groups))
	for g, group := range groups {
		call := ratelimit.Call{Keys: make([]string, len(group)), Args: make([]any, 0, 3*len(group))}
		for j, i := range group {
			c := copies[i]
			call.Keys[j] = keyOf(c).redisKey()
			call.Args = append(call.Args, c.Seq, r.ttl(c, now).Milliseconds(), encodeCopy(c))
		}
		calls[g] = call
	}
	var errs []error
	for g, reply := range r.script.RunPipelined(ctx, r.client, calls) {
		if reply.Err == nil {
			continue
		}
		if redis.HasErrorPrefix(reply.Err, "balances:") { // the script's own words, see lua/balances.lua
			refused += len(groups[g])
			continue
		}
		errs = append(errs, reply.Err)
		for _, i := range groups[g] {
			failed = append(failed, copies[i])
		}
	}
	return failed, refused, errors.Join(errs...)
}

// ttl is how long Redis keeps c: until its next event, after which it says nothing, and at most ttlMax. The script wants at
// least 1 ms.
func (r *redisCopies) ttl(c *ledger.BalanceCopy, now time.Time) time.Duration {
	ttl := r.ttlMax
	if !c.ValidUntil.IsZero() {
		ttl = min(ttl, c.ValidUntil.Sub(now))
	}
	return max(ttl, time.Millisecond)
}

// groups cuts 0..n-1 into the commands to send: by number, and in a cluster by tenant too.
func (r *redisCopies) groups(n int, tenant func(i int) string) [][]int {
	var out [][]int
	open := make(map[string]int) // index in out of the tenant's unfinished group
	for i := range n {
		name := ""
		if r.cluster {
			name = tenant(i)
		}
		g, ok := open[name]
		if !ok || len(out[g]) == redisCallMax {
			g = len(out)
			open[name] = g
			out = append(out, nil)
		}
		out[g] = append(out[g], i)
	}
	return out
}
