package lua_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lua"
)

const (
	leaseA = "aaaaaaaaaaaaaaaaaaaaaa"
	leaseB = "bbbbbbbbbbbbbbbbbbbbb_"
)

func TestLeases_BadArguments_ChangeNothing(t *testing.T) {
	t.Parallel()
	client := connect(t)
	_, err := run(t, client, lua.Leases, []string{"k"}, 0, 0, 5, 60_000_000, leaseA, 0)
	require.NoError(t, err)
	before := contents(t, client)
	bad := map[string][]any{
		"no arguments":       {},
		"five":               {0, 0, 5, 60_000_000, leaseB},
		"seven":              {0, 0, 5, 60_000_000, leaseB, 0, 1},
		"a second lease":     {0, 0, 5, 60_000_000, leaseB, 0, 60_000_000, leaseA},
		"half a pair":        {5, 0, 5, 60_000_000, leaseB, 0, 60_000_000},
		"second without ttl": {5, 0, 5, 60_000_000, leaseB, 0, 0, leaseA},
		"life without key":   {0, 0, 5, 60_000_000, leaseB, 1},
		"unknown op":         {6, 0, 5, 60_000_000, leaseB, 0},
		"now of 2^53":        {0, int64(1 << 53), 5, 60_000_000, leaseB, 0},
		"no capacity":        {0, 0, 0, 60_000_000, leaseB, 0},
		"capacity too large": {0, 0, 10_001, 60_000_000, leaseB, 0},
		"count, no capacity": {4, 0, 0, 60_000_000, leaseB, 0},
		"no ttl":             {0, 0, 5, 0, leaseB, 0},
		"renew without ttl":  {1, 0, 5, 0, leaseA, 0},
		"adopt without ttl":  {2, 0, 5, 0, leaseA, 0},
		"ttl too long":       {0, 0, 5, 3_600_000_001, leaseB, 0},
	}
	for _, name := range []string{"", "a", leaseB + "b", "clock", "bbbbbbbbbbbbbbbbbbbb\x00b", "bbbbbbbbbbbbbbbbbbbbb ", "bbbbbbbbbbbbbbbbbbbbb\n"} {
		bad[fmt.Sprintf("lease %q", name)] = []any{0, 0, 5, 60_000_000, name, 0}
		bad[fmt.Sprintf("release of %q", name)] = []any{3, 0, 5, 60_000_000, name, 0}
	}
	for _, number := range []string{"-1", "1.5", "1e3", "nan", "inf", "", "x", "1 2", "0x10", "9007199254740992"} {
		for _, i := range []int{0, 1, 2, 3, 5} {
			args := []any{0, 0, 5, 60_000_000, leaseB, 0}
			args[i] = number
			bad[fmt.Sprintf("argument %d is %q", i, number)] = args
		}
	}
	for name, args := range bad {
		reply, err := run(t, client, lua.Leases, []string{"k"}, args...)
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), "ERR leases: "), "%s: answers %v, %v", name, reply, err)
		require.Equal(t, before, contents(t, client), "%s: changed %s into", name, before)
	}
	for _, keys := range [][]string{nil, {"k", "l"}} {
		_, err = run(t, client, lua.Leases, keys, 0, 0, 5, 60_000_000, leaseB, 0)
		assert.True(t, err != nil && strings.Contains(err.Error(), "one key"), "%d keys: %v", len(keys), err)
	}
}

// TestLeases_ForeignValue_IsNotABucket: if the value of a key is not a bucket of leases, the reply is an error, and
// the value does not change.
func TestLeases_ForeignValue_IsNotABucket(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	now := float64(time.Now().UnixMicro())
	client.Set(ctx, "string", "5", 0)
	client.LPush(ctx, "list", "5")
	client.HSet(ctx, "hash", "clock", "5")
	client.SAdd(ctx, "set", "clock")
	for name, members := range map[string][]redis.Z{
		"no clock":          {{Score: now, Member: leaseA}},
		"a clock to come":   {{Score: now, Member: "clock"}, {Score: now, Member: leaseA}},
		"half a us":         {{Score: -0.5, Member: "clock"}, {Score: now, Member: leaseA}},
		"before the clock":  {{Score: -now, Member: "clock"}, {Score: -now - 1, Member: leaseA}},
		"lasts for ever":    {{Score: -now, Member: "clock"}, {Score: now + 3_600_000_001, Member: leaseA}},
		"ends at infinity":  {{Score: -now, Member: "clock"}, {Score: math.Inf(1), Member: leaseA}},
		"clock at infinity": {{Score: math.Inf(-1), Member: "clock"}, {Score: now, Member: leaseA}},
		"clock beyond 2^53": {{Score: -1e17, Member: "clock"}, {Score: now, Member: leaseA}},
	} {
		client.ZAdd(ctx, name, members...)
	}
	before := contents(t, client)
	keys := client.Keys(ctx, "*").Val()
	require.Len(t, keys, 12)
	for _, key := range keys {
		for op := range 5 {
			reply, err := run(t, client, lua.Leases, []string{key}, op, 0, 5, 60_000_000, leaseA, 0)
			assert.True(t, err != nil && strings.HasPrefix(err.Error(), "CORRUPT leases: "),
				"%s, op %d: %v, %v", key, op, reply, err)
		}
	}
	assert.Equal(t, before, contents(t, client), "changed %s into", before)
}

func TestLeases_DropsEndedLeases(t *testing.T) {
	t.Parallel()
	client := connect(t)
	for i, at := range []int64{1_000_000, 1_000_000, 1_500_000, 3_000_000} {
		lease := string(rune('a'+i)) + leaseA[1:]
		_, err := run(t, client, lua.Leases, []string{"k"}, 0, at, 5, 1_000_000, lease, 0)
		require.NoError(t, err)
	}
	n := client.ZCard(context.Background(), "k").Val()
	assert.True(t, n == 2, "%d members, want the clock and the one lease that has not ended", n)
}

// TestLeases_LeavesNoKeyBehind: when all leases of a bucket have been released, its key does not exist. Until then
// the key has an expiry.
func TestLeases_LeavesNoKeyBehind(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	call := func(want string, args ...any) {
		t.Helper()
		reply, err := run(t, client, lua.Leases, []string{"k"}, append(args, 0)...)
		require.True(t, err == nil && len(reply) == 8, "%v, %v", reply, err)
		got := fmt.Sprint(reply[2], reply[4])
		require.True(t, got == want, "code and held are %s, want %s", got, want)
	}
	call("0 1", 0, 0, 5, 60_000_000, leaseA)
	call("0 2", 0, 0, 5, 3_600_000_000, leaseB)
	ttl := client.PTTL(ctx, "k").Val()
	assert.True(t, ttl >= 59*time.Minute && ttl <= time.Hour+time.Second, "expires in %s", ttl)
	call("0 2", 1, 0, 5, 1_000_000, leaseB)
	ttl = client.PTTL(ctx, "k").Val()
	assert.True(t, ttl >= 50*time.Second && ttl <= 61*time.Second, "expires in %s", ttl)
	call("0 1", 3, 0, 0, 0, leaseA)
	call("0 0", 3, 0, 0, 0, leaseB)
	call("3 0", 3, 0, 0, 0, leaseB)
	call("3 0", 1, 0, 5, 60_000_000, leaseB)
	call("0 0", 4, 0, 5, 0, "")
	assert.Zero(t, client.DBSize(ctx).Val(), "keys are left")
}
