package lua_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lua"
)

const keepNotes = int64(30_000)

// heard runs the script. It returns the cursor and the balances of the reply, the balances in ascending order.
func heard(t *testing.T, client *redis.Client, since, most int64, notes ...any) (cursor int64, found []int64) {
	t.Helper()
	reply, err := run(t, client, lua.Interest, []string{"k"}, append([]any{since, keepNotes, most}, notes...)...)
	require.True(t, err == nil && len(reply) != 0, "%v, %v", reply, err)
	found = slices.Clone(reply[1:])
	slices.Sort(found)
	return reply[0], found
}

func TestInterest_ReturnsNotesSinceTheCursor(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	before := client.Time(ctx).Val().UnixMilli()
	cursor, found := heard(t, client, 0, 100, 7, int64(1<<53-1))
	require.True(t, cursor >= before && slices.Equal(found, []int64{7, 1<<53 - 1}),
		"cursor %d, before %d: %v", cursor, before, found)
	_, found = heard(t, client, cursor, 100, 8) // noted in the millisecond of the cursor or later
	require.True(t, slices.Contains(found, 8), "a note of this call is missing: %v", found)
	_, found = heard(t, client, cursor+3_600_000, 100)
	assert.Len(t, found, 3, "with a cursor ahead of the clock: %v, want all three", found)
	client.ZAdd(ctx, "k", redis.Z{Score: float64(before - 1000), Member: 7}, redis.Z{Score: float64(before - keepNotes - 1), Member: 8})
	_, found = heard(t, client, before, 100)
	assert.Equal(t, []int64{1<<53 - 1}, found, "since %d: %v, want the one that was noted since", before, found)
	_, found = heard(t, client, 0, 100)
	assert.Equal(t, []int64{7, 1<<53 - 1}, found, "want those that still count")
	ttl := client.PTTL(ctx, "k").Val()
	assert.True(t, ttl > 20*time.Second && ttl <= 30*time.Second, "the key expires in %s", ttl)
}

func TestInterest_ManyNotes_ComeInParts(t *testing.T) {
	t.Parallel()
	client := connect(t)
	base := client.Time(context.Background()).Val().UnixMilli() - 1000
	for i := range 25 {
		client.ZAdd(context.Background(), "k", redis.Z{Score: float64(base + int64(i)), Member: i + 1})
	}
	seen := map[int64]bool{}
	cursor := int64(0)
	for range 4 {
		var found []int64
		cursor, found = heard(t, client, cursor, 10)
		for _, id := range found {
			seen[id] = true
		}
		if len(found) < 10 {
			break
		}
	}
	assert.Len(t, seen, 25, "of 25 notes came")
}

func TestInterest_ClockSetBack_NotesEnd(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	client.ZAdd(ctx, "k", redis.Z{Score: float64(client.Time(ctx).Val().Add(time.Hour).UnixMilli()), Member: 5})
	_, found := heard(t, client, 0, 10)
	assert.Equal(t, []int64{5}, found)
	score := int64(client.ZScore(ctx, "k", "5").Val())
	assert.True(t, score <= client.Time(ctx).Val().UnixMilli(), "noted at %d, an hour from now", score)
}

func TestInterest_BadArguments_Refused(t *testing.T) {
	t.Parallel()
	client := connect(t)
	many := []any{0, keepNotes, 10}
	for i := range 1001 {
		many = append(many, i)
	}
	for _, args := range [][]any{
		{},
		{0, keepNotes},
		{-1, keepNotes, 10},
		{0, 0, 10},
		{0, 3_600_001, 10},
		{0, keepNotes, 0},
		{0, keepNotes, 10_001},
		{0, keepNotes, 10, "x"},
		{0, keepNotes, 10, -1},
		{0, keepNotes, 10, "01"},
		{0, keepNotes, 10, int64(1 << 53)},
		many,
	} {
		if reply, err := run(t, client, lua.Interest, []string{"k"}, args...); err == nil || !strings.HasPrefix(err.Error(), "ERR interest: ") {
			t.Errorf("%v: %v, %v; want a refusal", args[:min(len(args), 4)], reply, err)
		}
	}
	assert.Zero(t, client.Exists(context.Background(), "k").Val(), "a refused call has written")
	client.Set(context.Background(), "k", "text", 0)
	_, err := run(t, client, lua.Interest, []string{"k"}, 0, keepNotes, 10, 1)
	assert.True(t, err != nil && strings.HasPrefix(err.Error(), "CORRUPT interest: "), "a value of another type: %v", err)
}
