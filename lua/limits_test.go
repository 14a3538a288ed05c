package lua_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/lua"
)

// aRule returns the arguments of a rule: a token bucket with a capacity of 10 tokens and a rate of 1/s.
func aRule() []any { return []any{3, 10, 1, 1_000_000, 5} }

// oneCharge returns the arguments of one request that charges cost to one bucket.
func oneCharge(cost any) []any { return arguments([][]any{aRule()}, [][]any{{0, 1, 1, 0, cost}}, 64) }

// arguments returns the arguments of a call that uses Redis's time. Each request is the number 64 * the index of its
// first bucket + the index of its form.
func arguments(rules, forms [][]any, requests ...any) []any {
	return append(slices.Concat([]any{0, len(rules), len(forms), 0}, slices.Concat(rules...), slices.Concat(forms...)), requests...)
}

// runLimits runs the script and returns the integers of its reply.
func runLimits(t *testing.T, client *redis.Client, keys []string, args ...any) ([]int64, error) {
	t.Helper()
	packed, err := client.Eval(context.Background(), lua.Limits, keys, args...).Text()
	if err != nil {
		return nil, err
	}
	const size = 7
	var ints []int64
	for ; len(packed) >= size; packed = packed[size:] {
		n := int64(0)
		for i := range size {
			n = n<<8 | int64(packed[i])
		}
		ints = append(ints, n)
	}
	return ints, nil
}

func TestLimits_BadArguments_ChangeNothing(t *testing.T) {
	t.Parallel()
	client := connect(t)
	_, err := runLimits(t, client, []string{"k"}, oneCharge(3)...)
	require.NoError(t, err)
	before := contents(t, client)

	// with returns the arguments of a call with one rule, the given number of forms, and the given other arguments.
	with := func(forms any, rest ...any) []any { return append(append([]any{0, 1, forms, 0}, aRule()...), rest...) }
	bad := map[string][]any{
		"no arguments":            {},
		"no rules":                {0, 0, 1, 0, 0, 1, 1, 0, 1, 64},
		"too many rules":          append([]any{0, 1025, 1, 0}, repeat(1030, 3, 10, 1, 1_000_000, 5)...),
		"no forms":                with(0, 64),
		"too many forms":          with(65, 0, 1, 1, 0, 1, 64),
		"missing parameters":      {0, 1, 1, 0, 3, 10, 1},
		"missing last parameter":  {0, 1, 1, 0, 3, 10, 1, 1_000_000},
		"a rule too few":          {0, 2, 1, 0, 3, 10, 1, 1_000_000, 5, 0, 1, 1, 0},
		"no charges":              with(1, 0, 0, 64),
		"a raise without a level": with(1, 3, 1, 1, 0, 1, 5, 5),
		"a raise without a debt":  with(1, 3, 1, 1, 0, 1, 5, 5, 5),
		"a raise without its own": with(1, 3, 1, 1, 0, 1, 5, 5, 5, 5, 5),
		"late without a debt":     with(1, 4, 1, 1, 0, 1),
		"a debt of 2^53 units":    with(1, 4, 1, 1, 0, 1, 9_007_199_245, 64),
		"a ban without its times": {0, 1, 1, 0, 19, 10, 1, 1_000_000, 5, 3, 1, 0, 1, 1, 0, 1, 64},
		"a ban after nothing":     {0, 1, 1, 0, 19, 10, 1, 1_000_000, 5, 0, 9, 9, 0, 0, 1, 1, 0, 1, 64},
		"a ban after 1001":        {0, 1, 1, 0, 19, 10, 1, 1_000_000, 5, 1001, 9, 9, 0, 0, 1, 1, 0, 1, 64},
		"bans of all keys":        {0, 1, 1, 0, 19, 10, 1, 1_000_000, 5, 3, 9, 9, 1, 1, 0, 1, 1, 0, 1, 64},
		"an id without a mark":    with(1, 8, 1, 1, 0, 1, 64),
		"an id without a key":     with(1, 8, 1, 1, 0, 1, 5, 64),
		"an id in a peek":         with(1, 9, 1, 1, 0, 1, 5, 64),
		"an id in a raise":        with(1, 11, 1, 1, 0, 1, 5, 5, 5, 5, 5, 5, 5, 64),
		"another mode":            with(1, 5, 1, 1, 0, 1, 5, 5, 5, 64),
		"too many charges":        with(1, append([]any{0, 17}, repeat(18, 1, 0, 1)...)...),
		"rule 0":                  with(1, 0, 1, 0, 0, 1, 64),
		"rule 2 of 1":             with(1, 0, 1, 2, 0, 1, 64),
		"bucket 2 of 1, near":     with(1, 0, 1, 1, 1, 1, 64),
		"bucket 2 of 1, far":      with(1, 0, 1, 1, 17, 1, 64),
		"bucket beyond all":       with(1, 0, 1, 1, int64(1)<<52, 1, 64),
		"same bucket twice":       with(1, 0, 2, 1, 0, 1, 1, 0, 1, 64),
		"same bucket, two ways":   with(1, 0, 2, 1, 0, 1, 1, 16, 1, 64),
		"missing cost":            with(1, 0, 1, 1, 0),
		"missing form":            with(2, 0, 1, 1, 0, 1),
		"no request":              with(1, 0, 1, 1, 0, 1),
		"a refund without a time": with(1, 2, 1, 1, 0, 1),
		"too many requests":       with(1, append([]any{0, 1, 1, 0, 1}, repeat(65, 64)...)...),
		"request without bucket":  with(1, 0, 1, 1, 0, 1, 0),
		"request on bucket 2":     with(1, 0, 1, 1, 0, 1, 128),
		"form 2 of 1":             with(1, 0, 1, 1, 0, 1, 65),
		"good, then a bad form":   with(2, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 64),
		"good, then bad request":  with(1, 0, 1, 1, 0, 1, 64, 65),
		"bad at the end":          with(1, 0, 1, 1, 0, 1, 64, "x"),
	}
	for _, cost := range []any{"-1", "0", "1.5", "9007199254740992", "1e30", "nan", "-nan", "inf", "-inf", "", "x", "1 2", "\x00"} {
		bad[fmt.Sprintf("cost %q", cost)] = oneCharge(cost)
	}
	for name, args := range bad {
		reply, err := runLimits(t, client, []string{"k"}, args...)
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), "ERR limits: "), "%s: answers %v, %v", name, reply, err)
		require.Equal(t, before, contents(t, client), "%s: changed %s into", name, before)
	}
	two := arguments([][]any{aRule()}, [][]any{{0, 2, 1, 0, 1, 1, 1, 1}}, 64)
	_, err = runLimits(t, client, []string{"k", "k"}, two...)
	assert.True(t, err != nil && strings.Contains(err.Error(), "key 2 is given twice"), "the same key twice: %v", err)
	two = arguments([][]any{aRule(), aRule()}, [][]any{{0, 1, 1, 0, 1}, {0, 1, 2, 0, 1}}, 64, 65)
	_, err = runLimits(t, client, []string{"k"}, two...)
	assert.True(t, err != nil && strings.Contains(err.Error(), "key 1 has two rules"), "a key with two rules: %v", err)
	_, err = runLimits(t, client, nil, oneCharge(1)...)
	assert.True(t, err != nil && strings.Contains(err.Error(), "1 to 1024 buckets"), "no keys: %v", err)
	require.Equal(t, before, contents(t, client), "changed %s into", before)
}

func TestLimits_AcceptsTheLargestCall(t *testing.T) {
	t.Parallel()
	client := connect(t)
	var keys []string
	var rules, forms [][]any
	var requests []any
	for i := range 1024 {
		keys, rules = append(keys, fmt.Sprintf("k%d", i)), append(rules, aRule())
	}
	for r := range 64 {
		form := []any{0, 16}
		for j := range 16 {
			form = append(form, r*16+j+1, j, 1)
		}
		forms, requests = append(forms, form), append(requests, 64*(16*r+1)+r)
	}
	args := arguments(rules, forms, requests...)
	reply, err := runLimits(t, client, keys, args...)
	require.True(t, err == nil && len(reply) == 4+64*33, "%d integers, %v", len(reply), err)
	n, err := client.DBSize(context.Background()).Result()
	assert.True(t, err == nil && n == 1024, "%d buckets written (%v), want 1024", n, err)
	_, err = runLimits(t, client, append(keys, "one more"), args...)
	assert.True(t, err != nil && strings.Contains(err.Error(), "1 to 1024 buckets"), "1025 keys: %v", err)
}

// kindArgs returns the arguments of a rule of each kind, with a capacity of 10 tokens. All parameters are far from
// their bounds.
func kindArgs() map[string][]any {
	return map[string][]any{
		"token bucket":    {3, 10, 1, 1_000_000, 5},
		"leaky bucket":    {5, 10, 1, 1_000_000, 5},
		"fixed window":    {7, 10, 60_000_000, 0, 0},
		"calendar window": {7, 10, 1, 4_000_000_000_000_000, 8_000_000_000_000_000},
		"sliding window":  {9, 10, 1_000_000, 1, 2},
		"sliding log":     {11, 10, 1_000_000, 2, 0},
	}
}

// TestLimits_ParametersOutOfBounds_AreRefused: for each kind, a call whose parameters do not allow exact arithmetic
// is refused with an error.
func TestLimits_ParametersOutOfBounds_AreRefused(t *testing.T) {
	t.Parallel()
	client := connect(t)
	const huge = int64(1<<53 - 1)
	for name, params := range map[string][]any{
		"bucket without capacity":       {3, 0, 1, 1_000_000, 5},
		"bucket without refill":         {3, 10, 0, 1_000_000, 5},
		"bucket without units":          {3, 10, 1, 0, 14},
		"bucket of 2^53 units":          {3, 9_007_199_255, 1, 1_000_000, 5},
		"bucket with a wrong form":      {3, 10, 1, 1_000_000, 6},
		"bucket without a form":         {3, 10, 1, 1_000_000, 0},
		"leaky bucket of 2^53 units":    {5, 9_007_199_255, 1, 1_000_000, 5},
		"window without capacity":       {7, 0, 60_000_000, 0, 0},
		"window without length":         {7, 10, 0, 0, 0},
		"window with a phase too long":  {7, 10, 60, 60, 0},
		"calendar without start":        {7, 10, 0, 5, 9},
		"calendar that ends at start":   {7, 10, 5, 5, 9},
		"calendar whose next is empty":  {7, 10, 1, 5, 5},
		"sliding without capacity":      {9, 0, 1_000_000, 1, 2},
		"sliding without ticks":         {9, 10, 0, 1, 2},
		"sliding without tick":          {9, 10, 1_000_000, 0, 2},
		"sliding of 2^53 ticks":         {9, 9_007_199_255, 1_000_000, 1, 2},
		"sliding window of 2^53 us":     {9, 1, huge, 2, 2},
		"sliding with a wrong form":     {9, 10, 1_000_000, 1, 5},
		"log without capacity":          {11, 0, 1_000_000, 2, 0},
		"log of 1,001":                  {11, 1001, 1_000_000, 2, 0},
		"log without length":            {11, 10, 0, 0, 0},
		"log with a wrong form":         {11, 10, 1_000_000, 1, 0},
		"log with a fourth parameter":   {11, 10, 1_000_000, 2, 1},
		"kind 0":                        {1, 10, 1_000_000, 0, 0},
		"kind 6":                        {13, 10, 1_000_000, 0, 0},
		"a kind far beyond, a shadow's": {1 << 40, 10, 1_000_000, 0, 0},
	} {
		args := arguments([][]any{params}, [][]any{{0, 1, 1, 0, 1}}, 64)
		reply, err := runLimits(t, client, []string{"k"}, args...)
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), "ERR limits: ") &&
			strings.Contains(err.Error(), "of rule 1"), "%s: answers %v, %v", name, reply, err)
	}
	assert.Equal(t, "map[]", contents(t, client), "written")
}

// TestLimits_ForeignValue_IsNotABucket: if the value of a key is not a bucket of the rule's kind, the request is
// denied, and the value does not change.
func TestLimits_ForeignValue_IsNotABucket(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", " ", "x", "1", "1 2", "1 2 3", "-1 2 3", "nan", "inf", "0x10", "a text that is longer than any bucket's value", "{\"a\":1}",
		strings.Repeat("9", 20), strings.Repeat("a", 7), strings.Repeat("a", 14), "1790000000123456 5 1000000", strings.Repeat("\xff", 14),
	}
	// A valid value begins with its time in µs, in seven bytes. The two times below are far in the past.
	const past, earlier = "\x00\x05\x00\x00\x00\x00\x00", "\x00\x04\x00\x00\x00\x00\x00"
	const beyond = "\x20\x00\x00\x00\x00\x00\x00" // 2^53
	bad := map[string][]string{
		"token bucket": {
			past, past + "\x05", past + "\x05\x00\x00\x00\x00\x00\x00\x00\x01\x05", past + "\x05\x00" + past, past + "\x05\x00" + beyond + "\x05", past + "\x05\x00" + past + "\x00\x05", beyond + "\x05\x05", past + "\x05\x00\x05", past + "\x05" + beyond, past + "\x80\x01\x05", past + "\x87\x01\x05",
			past + "\x05\x01\x02\x03\x04\x05\x06\x07\x08", past + "\x8e", past + "\x8e\x8e\x8e\x8e\x8e\x8e\x8e\x8e\x8e\x05",
			past + "\xff\xff\xff\xff\xff\xff\xff\x7f\x05", past + "\xff\xff\xff\xff\xff\xff\x7f\x05",
		},
		"fixed window": {past, past + "\x00\x05\x00\x05", beyond + "\x05", past + "\x00\x05", past + beyond, past + "\x01\x02\x03\x04\x05\x06\x07\x08"},
		"sliding window": {
			past, past + "\x02", past + "\x02\x05", past + "\x02\x05\x00\x05", past + "\x80\x01\x05\x05", past + "\x02\x85", beyond + "\x02\x05\x05",
			past + "\x02\x05" + beyond, past + "\x02\xff\xff\xff\xff\xff\xff\xff\x7f\x05", past + "\xff\xff\xff\xff\xff\xff\x7f\x05\x05",
		},
		"sliding log": {
			past + "\x00\x05", past + past + "\x00\x05", past[:6], beyond, earlier + past, past + past + earlier, past + beyond,
			strings.Repeat(past, 1002),
		},
	}
	bad["leaky bucket"], bad["calendar window"] = bad["token bucket"], bad["fixed window"]
	for kind, params := range kindArgs() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			client := connect(t)
			ctx := context.Background()
			values := append(append([]string{}, texts...), bad[kind]...)
			for i, v := range values {
				client.Set(ctx, fmt.Sprintf("k%d", i), v, 0)
			}
			n := len(values)
			client.LPush(ctx, fmt.Sprintf("k%d", n), "1 2 3")
			client.HSet(ctx, fmt.Sprintf("k%d", n+1), "1", "2")
			before := contents(t, client)
			for i := range n + 2 {
				for mode, want := range []string{"0 3 0", "0 3 0", "1 3 0"} { // consume, peek, refund
					form := []any{mode, 2, 1, 0, 1, 2, 1, 1}
					if mode == 2 {
						form = []any{mode, 2, 1, 0, 1, 0, 2, 1, 1, 0}
					}
					args := arguments([][]any{params, aRule()}, [][]any{form}, 64)
					reply, err := runLimits(t, client, []string{fmt.Sprintf("k%d", i), "sibling"}, args...)
					require.NoError(t, err, "key %d", i)
					if got := fmt.Sprintf("%d %d %d", reply[4], reply[5], reply[6]); got != want {
						t.Errorf("value %d, mode %d: allowed, code, level are %s, want %s", i, mode, got, want)
					}
				}
			}
			assert.Equal(t, before, contents(t, client), "changed %s into", before)
		})
	}
}

// TestLimits_StoresTheLeast: a bucket's value has at most 12 bytes, because Redis allocates 32 bytes for values of up
// to 12 bytes. A sliding log with one token has at most 15 bytes. The key expires when the bucket is full.
func TestLimits_StoresTheLeast(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	const now = int64(1_790_000_000_123_456)
	kinds := kindArgs()
	kinds["calendar window"] = []any{7, 10, now - 1000, now + 60_000_000, now + 120_000_000}
	for kind, params := range kinds {
		key := strings.ReplaceAll(kind, " ", "-")
		at := func(form ...any) []any {
			args := arguments([][]any{params}, [][]any{form}, 64)
			args[0] = now
			return args
		}
		_, err := runLimits(t, client, []string{key}, at(0, 1, 1, 0, 1)...)
		require.NoError(t, err, "%s", kind)
		most := map[string]int{"sliding log": 15}[kind]
		if most == 0 {
			most = 12
		}
		got := len(client.Get(ctx, key).Val())
		assert.True(t, got <= most, "%s: a value of %d bytes, want at most %d", kind, got, most)
		ttl := client.PTTL(ctx, key).Val() - 599*time.Second
		assert.True(t, ttl > 0 && ttl <= 70*time.Second, "%s: expires in %s", kind, ttl)
		// The refund makes the bucket full, so its key is deleted.
		_, err = runLimits(t, client, []string{key}, at(2, 1, 1, 0, 1, 0)...)
		require.NoError(t, err, "%s", kind)
		if n := client.Exists(ctx, key).Val(); n != 0 {
			t.Errorf("%s: an untouched bucket is kept as %q", kind, client.Get(ctx, key).Val())
		}
	}
}

// TestLimits_OutOfMemory_ChangesNothing: if Redis is out of memory, the call fails and changes no bucket. It does not
// even delete the buckets that the call makes full.
func TestLimits_OutOfMemory_ChangesNothing(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(testenv.RedisPrivate(t).Options())
	defer func() { _ = client.Close() }()
	ctx := context.Background()
	keys := []string{"emptied", "kept", "emptied-too"}
	call := func(mode int, costs ...any) error {
		form := []any{mode, len(keys)}
		for i := range keys {
			form = append(form, 1, i, costs[i])
			if mode == 2 {
				form = append(form, 0)
			}
		}
		_, err := runLimits(t, client, keys, arguments([][]any{{3, 10, 1, 100_000_000, 7}}, [][]any{form}, 64)...)
		return err
	}
	require.NoError(t, call(0, 2, 8, 2))
	before := contents(t, client)
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	for mode := range 3 {
		err := call(mode, 2, 2, 2)
		if writes := mode != 1; writes && (err == nil || !strings.Contains(err.Error(), "OOM")) || !writes && err != nil {
			t.Errorf("mode %d answers %v", mode, err)
		}
		assert.Equal(t, before, contents(t, client), "mode %d changed %s into", mode, before)
	}
}

// TestLimits_ReadsTheClockOnce: before Redis 7.2 two reads of the clock in one script return different times, so the
// script may read it only once.
func TestLimits_ReadsTheClockOnce(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(testenv.RedisPrivate(t).Options())
	defer func() { _ = client.Close() }()
	var keys []string
	var rules [][]any
	form := []any{0, len(kindArgs())}
	for kind, params := range kindArgs() {
		keys, rules = append(keys, kind), append(rules, params)
		form = append(form, len(rules), len(rules)-1, 1)
	}
	_, err := runLimits(t, client, keys, arguments(rules, [][]any{form}, repeat(64, 64)...)...)
	require.NoError(t, err)
	info := client.Info(context.Background(), "commandstats").Val()
	assert.True(t, strings.Contains(info, "cmdstat_time:calls=1,") && strings.Contains(info, "cmdstat_mget:calls=1,"),
		"64 requests on %d kinds: %s", len(keys), info)
	for _, command := range []string{"expire", "watch", "multi", "incr", "hset"} { // SET writes value and expiry
		assert.NotContains(t, info, "cmdstat_"+command, "the script uses %s", command)
	}
}

func repeat(n int, values ...any) []any {
	var all []any
	for range n {
		all = append(all, values...)
	}
	return all
}
