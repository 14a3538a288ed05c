package price

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

func amounts() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(1, 50), rapid.Int64Range(1, bound.MaxAmount), rapid.Just(int64(bound.MaxAmount)), rapid.Just(int64(bound.MaxAmount-1)))
}

// exact returns a*b/c, rounded up or down. It computes with integers of any size. If the result is larger than
// math.MaxInt64, it returns math.MaxInt64.
func exact(a, b, c int64, up bool) int64 {
	n := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	if up {
		n.Add(n, big.NewInt(c-1))
	}
	n.Div(n, big.NewInt(c))
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

func TestRatio_IsExactUpToTheLargestAmounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := Ratio{amounts().Draw(t, "units"), amounts().Draw(t, "per")}
		n := rapid.OneOf(rapid.Just(int64(0)), amounts()).Draw(t, "n")
		got, want := r.Cost(n), exact(n, r.Units, r.Per, true)
		require.True(t, got == want, "%v of %d costs %d, not %d", r, n, got, want)
		if got, want := r.MaxUnits(n), exact(n, r.Per, r.Units, false); got != want {
			t.Fatalf("%v: %d reaches %d, not %d", r, n, got, want)
		}
		if reach := r.MaxUnits(n); reach < bound.MaxAmount && (r.Cost(reach) > n || r.Cost(reach+1) <= n) {
			t.Fatalf("%v: %d pays for %d, which costs %d; one more costs %d", r, n, reach, r.Cost(reach), r.Cost(reach+1))
		}
		if part := rapid.Int64Range(0, n).Draw(t, "part"); r.Cost(n) < math.MaxInt64 && (r.Cost(part) > r.Cost(n) || r.Cost(part)+r.Cost(n-part) < r.Cost(n)) {
			t.Fatalf("%v: %d costs %d, %d of it %d, the rest %d", r, n, r.Cost(n), part, r.Cost(part), r.Cost(n-part))
		}
	})
}

func TestRatio_JSON_IntegerOrParts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Ratio{
		"3": {3, 1}, `{"units":1,"per":1000}`: {1, 1000}, `{"per": 1, "units": 4}`: {4, 1}, `9007199254740991`: {bound.MaxAmount, 1},
	} {
		var r Ratio
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
		require.Equal(t, want, r)
		again, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(again, &r))
		require.Equal(t, want, r)
	}
	for _, text := range []string{
		"0", "-1", "0.5", "1e3", `"1"`, "[1]", "{}", `{"units":1}`, `{"per":1}`, `{"units":0,"per":1}`, `{"units":1,"per":0}`, `{"units":1,"per":-5}`,
		`{"units":1,"per":1000,"of":"x"}`, `{"units":1.5,"per":1}`, "9007199254740992", `{"units":1,"per":9007199254740992}`,
	} {
		var r Ratio
		require.Error(t, json.Unmarshal([]byte(text), &r), text)
		require.Zero(t, r)
	}
}

func TestRatio_Exact_DecimalsWhereTheyEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		price Ratio
		n     int64
		want  string
	}{
		{Ratio{1, 1000}, 2345, "2.345"},
		{Ratio{1, 1000}, 2000, "2"},
		{Ratio{1, 1000}, 1, "0.001"},
		{Ratio{1, 3}, 7, "2 1/3"},
		{Ratio{1, 3}, 1, "1/3"},
		{Ratio{2, 6}, 3, "1"},
		{Ratio{7, 1}, 3, "21"},
		{Ratio{1, 1_000_000_000}, 1, "0.000000001"},
		{Ratio{1, 10_000_000_000}, 1, "1/10000000000"},
		{Ratio{bound.MaxAmount, 2}, bound.MaxAmount, "40564819207303331840695247831040.5"},
	} {
		require.Equal(t, tc.want, tc.price.Exact(tc.n), "%d at %v", tc.n, tc.price)
	}
}

// The charged amount is the exact cost, rounded up.
func TestRatio_Exact_RoundedUpIsTheCost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := Ratio{rapid.Int64Range(1, 1<<31).Draw(t, "units"), rapid.Int64Range(1, 1<<31).Draw(t, "per")}
		n := rapid.Int64Range(1, 1<<31).Draw(t, "n")
		whole, fraction, mixed := strings.Cut(r.Exact(n), " ")
		if !mixed && strings.Contains(whole, "/") {
			whole, fraction = "0", whole
		}
		exact, ok := new(big.Rat).SetString(whole)
		if part, isPart := new(big.Rat).SetString(fraction); isPart {
			exact.Add(exact, part)
		}
		if up := new(big.Rat).Sub(new(big.Rat).SetInt64(r.Cost(n)), exact); !ok || up.Sign() < 0 || up.Cmp(big.NewRat(1, 1)) >= 0 {
			t.Fatalf("%v of %d is exactly %s, and costs %d", r, n, r.Exact(n), r.Cost(n))
		}
	})
}
