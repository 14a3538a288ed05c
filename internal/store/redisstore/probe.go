package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// trialTTL is the lifetime of the value of a trial write. Nothing reads this value.
const trialTTL = time.Second

// probeOutcome returns the result of a probe of sh. err is the error of the probe's request. If the shard rejected
// writes, it must also accept a trial write, because most requests do not write and prove nothing about writes. The
// trial may take the rest of the budget.
func (s *Store) probeOutcome(ctx context.Context, deadline time.Time, sh *shard, key string, err error) probe {
	result := probeOf(err)
	if result != probePassed || !sh.breaker.isReadOnly() {
		return result
	}
	trial, cancel := context.WithDeadline(ctx, deadline.Add(s.cfg.Budget/2))
	defer cancel()
	// If the key exists, NX keeps its value. That is no error.
	err = s.client.SetArgs(trial, trialKey(key), "", redis.SetArgs{Mode: "NX", TTL: trialTTL}).Err()
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return probePassed
	case ctx.Err() != nil:
		return probeUndecided
	default:
		return probeOf(classify(err))
	}
}

// probeOf returns the result of a probe from the error of its request.
func probeOf(err error) probe {
	switch {
	case err == nil, errors.Is(err, ErrScript):
		return probePassed
	case blamesShard(err):
		return probeFailed
	case errors.Is(err, ErrAway):
		return probePassed
	default:
		return probeUndecided
	}
}

// trialKey returns a key in the slot of key. No other code uses this key.
func trialKey(key string) string {
	open, end := strings.IndexByte(key, '{'), strings.IndexByte(key, '}')
	if open < 0 || end < open {
		return "rl:?"
	}
	return "rl:" + key[open:end+1] + "?"
}
