package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// errReadOnly says that Redis answers and does not write: a replica, or one that is out of memory or cannot save. It would
// answer peeks all the same, from buckets in which nothing is charged any more.
var errReadOnly = fmt.Errorf("%w: it does not write", errBackend)

// trialTTL is how long a trial write stays. It only has to be written.
const trialTTL = time.Second

// refusesWrites reports whether err is a server's that runs no command that writes.
func refusesWrites(err error) bool {
	for _, code := range []string{"READONLY ", "OOM ", "MISCONF ", "NOREPLICAS "} {
		if redis.HasErrorPrefix(err, code) {
			return true
		}
	}
	return false
}

// outcome is what a probe of sh about key, which ended with err until turn, says of it. A shard that did not write is asked to: most
// requests write nothing, and their answers do not tell that it is well. It takes what is left of the decision's budget.
func (l *Limiter) outcome(ctx context.Context, turn time.Time, sh *shard, key string, err error) probe {
	result := probeOutcome(err)
	if result != probePassed || !sh.breaker.isReadOnly() {
		return result
	}
	trial, cancel := context.WithDeadline(ctx, turn.Add(l.cfg.Budget/2))
	defer cancel()
	// What is there already is left alone, and is no error.
	err = l.client.SetArgs(trial, trialKey(key), "", redis.SetArgs{Mode: "NX", TTL: trialTTL}).Err()
	switch {
	case err == nil, errors.Is(err, redis.Nil):
		return probePassed
	case ctx.Err() != nil:
		return probeUndecided
	default:
		return probeOutcome(notDecided(err))
	}
}

// trialKey is a key in the slot of key that is nobody's.
func trialKey(key string) string {
	open, end := strings.IndexByte(key, '{'), strings.IndexByte(key, '}')
	if open < 0 || end < open {
		return "rl:?"
	}
	return "rl:" + key[open:end+1] + "?"
}
