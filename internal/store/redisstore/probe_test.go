package redisstore

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// TestTrialKey_IsInTheKeysSlot: on a cluster the trial write must go to the shard that has the key.
func TestTrialKey_IsInTheKeysSlot(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"rl:{acme}t:rule":        "rl:{acme}?",
		"rl:{rule/1a2b}t":        "rl:{rule/1a2b}?",
		"quota:{acme}:api_calls": "rl:{acme}?",
		"":                       "rl:?",
		"rl:replicas":            "rl:?",
		"}{":                     "rl:?",
	} {
		got := trialKey(key)
		assert.True(t, got == want, "%q: %q, want %q", key, got, want)
	}
}

func TestRejectsWrites_OnlyOnRedissOwnError(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	client := patientClient(t, server.Options())
	for text, want := range map[string]bool{
		"READONLY You can't write against a read only replica. script: 0123, on @user_script:7.": true,
		"OOM command not allowed when used memory > 'maxmemory'.":                                true,
		"MISCONF Redis is configured to save RDB snapshots, but it's unable to persist to disk.": true,
		"NOREPLICAS Not enough good replicas to write.":                                          true,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":       false,
		"LOADING Redis is loading the dataset in memory":                                         false,
		"ERR OOMph": false,
	} {
		err := client.Eval(t.Context(), "return redis.error_reply(ARGV[1])", nil, text).Err()
		assert.True(t, err != nil && rejectsWrites(err) == want, "%v: %v, want %v", err, !want, want)
	}
	assert.False(t, rejectsWrites(fmt.Errorf("READONLY %w", &url.Error{Op: "dial", Err: context.DeadlineExceeded})),
		"an error that is not Redis' own")
}
