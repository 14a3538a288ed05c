package ratelimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lane"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// maxReadBatch is the keys read in one pipeline: 256 values of a hundred bytes take Redis a quarter of a millisecond.
const maxReadBatch = 256

// readQuery is keys of one hash tag to be read.
type readQuery struct {
	tag  string
	keys []string
}

type readAnswer struct {
	values []string
	err    error
}

// Read reads keys that have {<tenant>} as their hash tag, as a decision's Reads do, for callers who have nothing to decide:
// with the same budget, and without waiting for a shard that is away. The error is ErrUnavailable, ErrStopped or ctx's, or a
// *FieldError.
func (l *Limiter) Read(ctx context.Context, tenant string, keys []string) ([]string, error) {
	req := Request{Tenant: tenant, Reads: keys}
	if _, err := req.check(rule.Peek); err != nil {
		return nil, err
	}
	switch {
	case l.stopped.Load():
		return nil, ErrStopped
	case len(keys) == 0:
		return nil, nil
	case l.client == nil:
		return nil, fmt.Errorf("%w: there is no redis", ErrUnavailable)
	}
	of := func(sh *shard) *lane.Lane[readQuery, readAnswer] { return sh.reads }
	a, err := through(ctx, l.turn(ctx), l, keys[0], readQuery{tenant, keys}, of, func(a readAnswer) error { return a.err })
	if errors.Is(err, errBackend) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return a.values, err
}

// processReads is the lane's work: one command for all keys, or one for each hash tag on a cluster, and each key once: a hot
// tenant's is in most requests.
func (l *Limiter) processReads(ctx context.Context, sh *shard, batch []readQuery) []readAnswer {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Budget/2)
	defer cancel()
	out := make([]readAnswer, len(batch))
	if err := l.ready(ctx, sh, batch[0].keys[0]); err != nil {
		for i := range out {
			out[i].err = err
		}
		return out
	}
	groups, all := l.readGroups(batch)
	pipe := l.client.Pipeline()
	for _, g := range all {
		g.cmd = pipe.MGet(ctx, g.keys...)
	}
	_, execErr := pipe.Exec(ctx)
	var away error
	for i := range batch {
		g := groups[i]
		values, err := g.cmd.Result()
		if err == nil && len(values) != len(g.keys) {
			err = errors.Join(errNoReply, execErr)
		}
		if err != nil {
			out[i].err = notDecided(err)
			if blamesShard(out[i].err) {
				away = out[i].err
			}
			continue
		}
		out[i].values = make([]string, len(batch[i].keys))
		for j, key := range batch[i].keys {
			out[i].values[j], _ = values[g.at[key]].(string)
		}
	}
	sh.breaker.record(l.cfg.Now(), away)
	return out
}

// readGroup is the keys of one command.
type readGroup struct {
	at   map[string]int // of a key in keys
	keys []string
	cmd  *redis.SliceCmd
}

// readGroups are the commands of a batch, and the one of each query.
func (l *Limiter) readGroups(batch []readQuery) (of, all []*readGroup) {
	of = make([]*readGroup, len(batch))
	byTag := make(map[string]*readGroup, 1)
	for i := range batch {
		tag := ""
		if l.cluster {
			tag = batch[i].tag
		}
		g := byTag[tag]
		if g == nil {
			g = &readGroup{at: make(map[string]int)}
			byTag[tag] = g
			all = append(all, g)
		}
		for _, key := range batch[i].keys {
			if _, known := g.at[key]; !known {
				g.at[key] = len(g.keys)
				g.keys = append(g.keys, key)
			}
		}
		of[i] = g
	}
	return of, all
}
