package lua_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lua"
)

const (
	replicaA = "9007199254740991"
	replicaB = "5"
	replicaC = "10"
	minute   = int64(60_000_000)
)

// signs runs the script and returns the entries of its reply, in ascending order.
func signs(t *testing.T, client *redis.Client, op int, id string, ttl int64) string {
	t.Helper()
	reply, err := run(t, client, lua.Replicas, []string{"k"}, op, id, ttl)
	require.True(t, err == nil && len(reply) >= 2 && reply[0] >= 1<<50, "%v, %v", reply, err)
	slices.Sort(reply[1:])
	return strings.Trim(fmt.Sprint(reply[1:]), "[]")
}

func TestReplicas_ReturnsRecentOnes(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	step := func(want string, op int, id string) {
		t.Helper()
		got := signs(t, client, op, id, minute)
		require.True(t, got == want, "%q, want %q", got, want)
	}
	step(replicaA, 0, replicaA)
	step(replicaA, 0, replicaA)
	step(replicaB+" "+replicaA, 0, replicaB)
	step("-"+replicaB+" "+replicaA, 1, replicaB)
	step("-"+replicaB+" "+replicaA, 0, replicaB) // a beat that arrives after the leave changes nothing
	step("-"+replicaB+" "+replicaC+" "+replicaA, 0, replicaC)
	// A minute later only entries that were renewed since then count.
	before := client.Time(ctx).Val().UnixMicro()
	client.ZAdd(ctx, "k", redis.Z{Score: float64(before - minute), Member: replicaA}, redis.Z{Score: float64(before - minute), Member: "-" + replicaB})
	step(replicaC, 0, replicaC)
	step(replicaB+" "+replicaC, 0, replicaB)
	score := int64(client.ZScore(ctx, "k", replicaB).Val())
	if after := client.Time(ctx).Val().UnixMicro(); score < before || score > after {
		t.Errorf("heard at %d, which is not from %d to %d by redis' clock", score, before, after)
	}
	ttl := client.PTTL(ctx, "k").Val()
	assert.True(t, ttl > 50*time.Second && ttl <= time.Minute, "the key expires in %s", ttl)
}

// TestReplicas_ClockSetBack_Expire: if the clock was set back, an entry has a time in the future. It counts as
// renewed now, so that it expires.
func TestReplicas_ClockSetBack_Expire(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	ahead := client.Time(ctx).Val().Add(time.Hour).UnixMicro()
	client.ZAdd(ctx, "k", redis.Z{Score: float64(ahead), Member: replicaB})
	got := signs(t, client, 0, replicaA, minute)
	assert.True(t, got == replicaB+" "+replicaA, got)
	score := int64(client.ZScore(ctx, "k", replicaB).Val())
	assert.True(t, score <= client.Time(ctx).Val().UnixMicro(), "heard at %d, an hour from now", score)
}

func TestReplicas_AreBounded(t *testing.T) {
	t.Parallel()
	client := connect(t)
	for i := range 1024 {
		signs(t, client, i%2, fmt.Sprint(i+1), minute)
	}
	before := contents(t, client)
	for op := range 2 {
		_, err := client.Eval(t.Context(), lua.Replicas, []string{"k"}, op, replicaA, minute).Slice()
		assert.True(t, err != nil && strings.Contains(err.Error(), "1024 already"), "op %d: one too many: %v", op, err)
	}
	assert.Equal(t, before, contents(t, client), "a refusal changed the set")
	for _, i := range []int{0, 0, 1} { // a replica that already has an entry is not refused
		signs(t, client, 0, fmt.Sprint(i+1), minute)
	}
	signs(t, client, 1, "1", minute)
}

func TestReplicas_BadArgumentsAndValues_AreRefused(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	signs(t, client, 0, replicaA, minute)
	before := contents(t, client)
	bad := map[string][]any{
		"no arguments": {}, "two": {0, replicaB}, "four": {0, replicaB, minute, 1}, "op 2": {2, replicaB, minute}, "op -1": {-1, replicaB, minute},
		"short ttl": {0, replicaB, 999}, "long ttl": {0, replicaB, 3_600_000_001},
	}
	for _, id := range []string{"", "a", "0", "-5", "05", "5 ", "5\n", "5.0", "5e3", "0x5", "nan", "inf", "9007199254740992", "90071992547409910"} {
		bad[fmt.Sprintf("id %q", id)] = []any{0, id, minute}
	}
	for _, ttl := range []string{"", "-1", "1e6", "1000.5", "nan", "inf", "0x1000", " 5000"} {
		bad[fmt.Sprintf("ttl %q", ttl)] = []any{0, replicaB, ttl}
	}
	for name, args := range bad {
		reply, err := client.Eval(ctx, lua.Replicas, []string{"k"}, args...).Slice()
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), "ERR replicas: "), "%s: %v, %v", name, reply, err)
	}
	for _, keys := range [][]string{nil, {"k", "l"}} {
		_, err := client.Eval(ctx, lua.Replicas, keys, 0, replicaB, minute).Slice()
		assert.True(t, err != nil && strings.Contains(err.Error(), "one key"), "%d keys: %v", len(keys), err)
	}
	assert.Equal(t, before, contents(t, client), "changed %s into", before)
	client.Set(ctx, "k", "5", 0)
	_, err := client.Eval(ctx, lua.Replicas, []string{"k"}, 0, replicaB, minute).Slice()
	assert.True(t, err != nil && strings.HasPrefix(err.Error(), "CORRUPT replicas: "), "a string: %v", err)
	client.Del(ctx, "k")
	client.ZAdd(ctx, "k", redis.Z{Score: math.Inf(1), Member: replicaB}, redis.Z{Score: math.Inf(1), Member: "somebody else's"})
	got := signs(t, client, 0, replicaA, minute)
	assert.True(t, got == replicaB+" "+replicaA, "heard at infinity: %s", got)
}
