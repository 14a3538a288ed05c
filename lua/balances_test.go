package lua_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/lua"
)

func TestBalances_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	put := func(stored int64, keys []string, args ...any) {
		t.Helper()
		reply, err := run(t, client, lua.Balances, keys, args...)
		require.True(t, err == nil && len(reply) == 1 && reply[0] == stored,
			"put %v: %v, %v; want %d stored", args, reply, err, stored)
	}
	want := func(key, value string) {
		t.Helper()
		got := client.Get(ctx, key).Val()
		require.True(t, got == value, "%s is %q, want %q", key, got, value)
	}
	put(2, []string{"a", "b"}, 9, 60_000, "nine", 5, 60_000, "five")
	want("a", "9 nine")
	put(1, []string{"a", "b"}, 10, 60_000, "ten", 4, 60_000, "four") // versions are numbers; as strings, "10" < "9"
	want("a", "10 ten")
	want("b", "5 five")
	put(0, []string{"a"}, 10, 120_000, "another ten")
	want("a", "10 ten")
	put(1, []string{"a"}, int64(1<<53-1), 60_000, "")
	want("a", "9007199254740991 ")
	put(0, []string{"a"}, int64(1<<53-2), 60_000, "older")
	put(1, []string{"zero"}, 0, 60_000, "with spaces\nand \x00 bytes")
	want("zero", "0 with spaces\nand \x00 bytes")
	put(2, []string{"twice", "twice", "twice"}, 5, 60_000, "five", 7, 60_000, "seven", 6, 60_000, "six")
	want("twice", "7 seven")
}

func TestBalances_TTL_IsThePublishers(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	for _, args := range [][]any{{1, 60_000, "a"}, {2, 3_600_000, "b"}, {2, 7_200_000, "b again"}} {
		_, err := run(t, client, lua.Balances, []string{"k"}, args...)
		require.NoError(t, err)
	}
	ttl := client.PTTL(ctx, "k").Val()
	assert.True(t, ttl <= time.Hour && ttl >= 50*time.Minute, "expires in %s, want the hour of the stored version", ttl)
	_, err := run(t, client, lua.Balances, []string{"far"}, 1, int64(1<<53-1), "v")
	assert.NoError(t, err, "the largest TTL")
}

func TestBalances_ForeignValue_IsReplaced(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	client.Set(ctx, "text", "no version", 0)
	client.Set(ctx, "huge", "9007199254740992 v", 0)
	client.LPush(ctx, "list", "x")
	keys := []string{"text", "huge", "list"}
	reply, err := run(t, client, lua.Balances, keys, 1, 1000, "v", 1, 1000, "v", 1, 1000, "v")
	require.True(t, err == nil && reply[0] == 3, "%v, %v; want 3 stored", reply, err)
	for _, key := range keys {
		assert.EqualValues(t, "1 v", client.Get(ctx, key).Val(), "%s", key)
	}
}

func TestBalances_BadArguments_ChangeNothing(t *testing.T) {
	t.Parallel()
	client := connect(t)
	_, err := run(t, client, lua.Balances, []string{"a"}, 1, 60_000, "v")
	require.NoError(t, err)
	before := contents(t, client)
	good := []any{2, 60_000, "v"}
	for name, args := range map[string][]any{
		"none":           {},
		"two per key":    {2, 60_000, 3, 60_000},
		"seven":          append(append(append([]any{}, good...), good...), 1),
		"negative seq":   append(append([]any{}, good...), -1, 60_000, "v"),
		"fraction":       append(append([]any{}, good...), "1.5", 60_000, "v"),
		"2^53":           append(append([]any{}, good...), int64(1<<53), 60_000, "v"),
		"nan":            append(append([]any{}, good...), "nan", 60_000, "v"),
		"hex":            append(append([]any{}, good...), "0x10", 60_000, "v"),
		"empty":          append(append([]any{}, good...), "", 60_000, "v"),
		"no TTL":         append(append([]any{}, good...), 3, 0, "v"),
		"negative TTL":   append(append([]any{}, good...), 3, -5, "v"),
		"TTL of 2^53":    append(append([]any{}, good...), 3, int64(1<<53), "v"),
		"TTL not number": append(append([]any{}, good...), 3, "x", "v"),
	} {
		reply, err := run(t, client, lua.Balances, []string{"a", "b"}, args...)
		assert.True(t, err != nil && strings.HasPrefix(err.Error(), "ERR balances: "), "%s: answers %v, %v", name, reply, err)
		require.Equal(t, before, contents(t, client), "%s: changed %s into", name, before)
	}
	_, err = run(t, client, lua.Balances, nil)
	assert.Error(t, err, "no keys are accepted")
}

func TestBalances_AnyOrder_EndsWithTheNewest(t *testing.T) {
	t.Parallel()
	client := connect(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		key := fmt.Sprintf("k%d", n)
		seqs := rapid.SliceOfN(rapid.Int64Range(0, 1<<53-1), 1, 50).Draw(t, "seqs")
		newest := int64(-1)
		ctx := context.Background()
		for len(seqs) > 0 {
			batch := seqs[:rapid.IntRange(1, len(seqs)).Draw(t, "batch")]
			seqs = seqs[len(batch):]
			var keys []string
			var args []any
			stored := int64(0)
			for _, seq := range batch {
				keys, args = append(keys, key), append(args, seq, 60_000, fmt.Sprint("v", seq))
				if seq > newest {
					newest, stored = seq, stored+1
				}
			}
			reply, err := client.Eval(ctx, lua.Balances, keys, args...).Int64Slice()
			require.True(t, err == nil && reply[0] == stored, "%v, %v; want %d stored", reply, err, stored)
		}
		got, want := client.Get(ctx, key).Val(), fmt.Sprintf("%d v%d", newest, newest)
		require.True(t, got == want, "%q, want %q", got, want)
	})
}

func TestBalances_ManyPublishers_EndWithTheNewest(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	testenv.Together(8, func(p int) {
		for seq := p; seq < 400; seq += 8 {
			assert.NoError(t, client.Eval(ctx, lua.Balances, []string{"k"}, seq, 60_000, "v").Err())
		}
	})
	assert.EqualValues(t, "399 v", client.Get(ctx, "k").Val(), "is stored, want the newest, 399")
}
