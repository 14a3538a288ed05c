package lua_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/lua"
)

func TestBalances_KeepsTheNewest(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	put := func(stored int64, keys []string, args ...any) {
		t.Helper()
		reply, err := run(t, client, lua.Balances, keys, args...)
		if err != nil || len(reply) != 1 || reply[0] != stored {
			t.Fatalf("put %v: %v, %v; want %d stored", args, reply, err, stored)
		}
	}
	want := func(key, value string) {
		t.Helper()
		if got := client.Get(ctx, key).Val(); got != value {
			t.Fatalf("%s is %q, want %q", key, got, value)
		}
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
		if _, err := run(t, client, lua.Balances, []string{"k"}, args...); err != nil {
			t.Fatal(err)
		}
	}
	if ttl := client.PTTL(ctx, "k").Val(); ttl > time.Hour || ttl < 50*time.Minute {
		t.Errorf("expires in %s, want the hour of the stored version", ttl)
	}
	if _, err := run(t, client, lua.Balances, []string{"far"}, 1, int64(1<<53-1), "v"); err != nil {
		t.Errorf("the largest TTL: %v", err)
	}
}

func TestBalances_ForeignValue_IsReplaced(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	client.Set(ctx, "text", "no version", 0)
	client.Set(ctx, "huge", "9007199254740992 v", 0)
	client.LPush(ctx, "list", "x")
	keys := []string{"text", "huge", "list"}
	if reply, err := run(t, client, lua.Balances, keys, 1, 1000, "v", 1, 1000, "v", 1, 1000, "v"); err != nil || reply[0] != 3 {
		t.Fatalf("%v, %v; want 3 stored", reply, err)
	}
	for _, key := range keys {
		if got := client.Get(ctx, key).Val(); got != "1 v" {
			t.Errorf("%s is %q", key, got)
		}
	}
}

func TestBalances_BadArguments_ChangeNothing(t *testing.T) {
	t.Parallel()
	client := connect(t)
	if _, err := run(t, client, lua.Balances, []string{"a"}, 1, 60_000, "v"); err != nil {
		t.Fatal(err)
	}
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
		if reply, err := run(t, client, lua.Balances, []string{"a", "b"}, args...); err == nil || !strings.HasPrefix(err.Error(), "ERR balances: ") {
			t.Errorf("%s: answers %v, %v", name, reply, err)
		}
		if after := contents(t, client); after != before {
			t.Fatalf("%s: changed %s into %s", name, before, after)
		}
	}
	if _, err := run(t, client, lua.Balances, nil); err == nil {
		t.Error("no keys are accepted")
	}
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
			if err != nil || reply[0] != stored {
				t.Fatalf("%v, %v; want %d stored", reply, err, stored)
			}
		}
		if got, want := client.Get(ctx, key).Val(), fmt.Sprintf("%d v%d", newest, newest); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

func TestBalances_ManyPublishers_EndWithTheNewest(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	var all sync.WaitGroup
	for p := range 8 {
		all.Go(func() {
			for seq := p; seq < 400; seq += 8 {
				if err := client.Eval(ctx, lua.Balances, []string{"k"}, seq, 60_000, "v").Err(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := client.Get(ctx, "k").Val(); got != "399 v" {
		t.Errorf("%q is stored, want the newest, 399", got)
	}
}
