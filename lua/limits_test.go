package lua_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quotasvc/quotasvc/lua"
)

// oneCharge is the arguments of one request of cost on one bucket of 10 tokens at 1/s.
func oneCharge(cost any) []any { return []any{0, 1, 3, 10, 1, 1_000_000, 14, 0, 1, 1, cost, 1} }

func TestLimitsRefusesBadArgumentsAndChangesNothing(t *testing.T) {
	t.Parallel()
	client := connect(t)
	if _, err := run(t, client, lua.Limits, []string{"k"}, oneCharge(3)...); err != nil {
		t.Fatal(err)
	}
	before := contents(t, client)

	bucket := []any{3, 10, 1, 1_000_000, 14}
	args := func(forms any, rest ...any) []any { return append(append([]any{0, forms}, bucket...), rest...) }
	bad := map[string][]any{
		"no arguments":           {},
		"no forms":               args(0, 1),
		"too many forms":         args(65, 0, 1, 1, 1, 1),
		"missing parameters":     {0, 1, 3, 10, 1},
		"missing last parameter": {0, 1, 3, 10, 1, 1_000_000},
		"no kind":                {0, 1, 1, 10, 1, 1_000_000, 14, 0, 1, 1, 1, 1},
		"unknown kind":           {0, 1, 99, 10, 1, 1_000_000, 14, 0, 1, 1, 1, 1},
		"no capacity":            {0, 1, 3, 0, 1, 1_000_000, 14, 0, 1, 1, 1, 1},
		"no refill":              {0, 1, 3, 10, 0, 1_000_000, 14, 0, 1, 1, 1, 1},
		"no units":               {0, 1, 3, 10, 1, 0, 0, 0, 1, 1, 1, 1},
		"capacity in units":      {0, 1, 3, 9_007_199_255, 1, 1_000_000, 14, 0, 1, 1, 1, 1},
		"unknown mode":           args(1, 3, 1, 1, 1, 1),
		"no rules":               args(1, 0, 0, 1),
		"too many rules":         args(1, append([]any{0, 17}, repeat(18, 1, 1)...)...),
		"key 0":                  args(1, 0, 1, 0, 1, 1),
		"key 2 of 1":             args(1, 0, 1, 2, 1, 1),
		"same key twice":         args(1, 0, 2, 1, 1, 1, 1, 1),
		"missing cost":           args(1, 0, 1, 1),
		"missing form":           args(2, 0, 1, 1, 1),
		"no request":             args(1, 0, 1, 1, 1),
		"too many requests":      args(1, append([]any{0, 1, 1, 1}, repeat(65, 1)...)...),
		"form 0":                 args(1, 0, 1, 1, 1, 0),
		"form 2 of 1":            args(1, 0, 1, 1, 1, 2),
		"good, then a bad form":  args(2, 0, 1, 1, 1, 0, 1, 1, 0, 1),
		"good, then bad request": args(1, 0, 1, 1, 1, 1, 2),
		"bad at the end":         args(1, 0, 1, 1, 1, 1, "x"),
	}
	for _, cost := range []any{"-1", "0", "1.5", "9007199254740992", "1e30", "nan", "-nan", "inf", "-inf", "", "x", "1 2", "\x00"} {
		bad[fmt.Sprintf("cost %q", cost)] = oneCharge(cost)
	}
	for name, args := range bad {
		if reply, err := run(t, client, lua.Limits, []string{"k"}, args...); err == nil || !strings.HasPrefix(err.Error(), "ERR limits: ") {
			t.Errorf("%s: answers %v, %v", name, reply, err)
		}
		if after := contents(t, client); after != before {
			t.Fatalf("%s: changed %s into %s", name, before, after)
		}
	}
	two := []any{0, 1, 3, 10, 1, 1_000_000, 14, 3, 10, 1, 1_000_000, 14, 0, 2, 1, 1, 2, 1, 1}
	if _, err := run(t, client, lua.Limits, []string{"k", "k"}, two...); err == nil || !strings.Contains(err.Error(), "key 2 is given twice") {
		t.Errorf("the same key twice: %v", err)
	}
	if _, err := run(t, client, lua.Limits, nil, 0, 1); err == nil || !strings.Contains(err.Error(), "1 to 1024 keys") {
		t.Errorf("no keys: %v", err)
	}
}

func TestLimitsAcceptsTheLargestCall(t *testing.T) {
	t.Parallel()
	client := connect(t)
	var keys []string
	args := []any{0, 64}
	for i := range 1024 {
		keys = append(keys, fmt.Sprintf("k%d", i))
		args = append(args, 3, 10, 1, 1_000_000, 14)
	}
	for r := range 64 {
		args = append(args, 0, 16)
		for j := range 16 {
			args = append(args, r*16+j+1, 1)
		}
	}
	for r := range 64 {
		args = append(args, r+1)
	}
	reply, err := run(t, client, lua.Limits, keys, args...)
	if err != nil || len(reply) != 2+1024+64*33 {
		t.Fatalf("%d integers, %v", len(reply), err)
	}
	if n, err := client.DBSize(context.Background()).Result(); err != nil || n != 1024 {
		t.Errorf("%d buckets written (%v), want 1024", n, err)
	}
	_, err = run(t, client, lua.Limits, append(keys, "one more"), args...)
	if err == nil || !strings.Contains(err.Error(), "1 to 1024 keys") {
		t.Errorf("1025 keys: %v", err)
	}
}

// TestLimitsNeverTakesAnotherValueForABucket: whatever a key holds, if it is not a bucket it denies and stays as it is.
func TestLimitsNeverTakesAnotherValueForABucket(t *testing.T) {
	t.Parallel()
	client := connect(t)
	ctx := context.Background()
	values := []string{
		"", " ", "x", "1", "1 2", "1 2 3 4", "1 2 3 ", " 1 2 3", "1  2 3", "-1 2 3", "1 -2 3", "1 2 -3", "1 2 0", "1.5 2 3", "nan nan nan",
		"inf 2 3", "0x10 2 3", "1 9007199254740992 3", "9007199254740992 2 3", "1 2 9007199254740992",
		"1 2 3\n", "1\x002 3", "1 " + strings.Repeat("9", 400) + " 3",
	}
	for i, v := range values {
		client.Set(ctx, fmt.Sprintf("k%d", i), v, 0)
	}
	n := len(values)
	client.LPush(ctx, fmt.Sprintf("k%d", n), "1 2 3")
	client.HSet(ctx, fmt.Sprintf("k%d", n+1), "1", "2")
	before := contents(t, client)
	for i := range n + 2 {
		for mode, want := range []string{"0 3 0", "0 3 0", "1 3 0"} { // consume, peek, refund
			args := []any{0, 1, 3, 10, 1, 1_000_000, 14, 3, 10, 1, 1_000_000, 14, mode, 2, 1, 1, 2, 1, 1}
			if mode == 2 {
				args = append(args[:16], 0, 2, 1, 0, 1)
			}
			reply, err := run(t, client, lua.Limits, []string{fmt.Sprintf("k%d", i), "sibling"}, args...)
			if err != nil {
				t.Fatalf("key %d: %v", i, err)
			}
			if got := fmt.Sprintf("%d %d %d", reply[4], reply[5], reply[6]); got != want {
				t.Errorf("key %d, mode %d: allowed, code, level are %s, want %s", i, mode, got, want)
			}
		}
	}
	if after := contents(t, client); after != before {
		t.Errorf("changed %s into %s", before, after)
	}
}

func repeat(n int, values ...any) []any {
	var all []any
	for range n {
		all = append(all, values...)
	}
	return all
}
