package rule

import (
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCompile_RegionShare(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		spec Spec
		want string
	}{
		{Spec{Rate: "60/s", RegionShare: 50}, "30/s 30"},
		{Spec{Rate: "60/s", Burst: 90, RegionShare: 33}, "99/5s 29"},
		{Spec{Rate: "7/s", RegionShare: 100}, "7/s 7"},
		{Spec{Rate: "7/s"}, "7/s 7"},
		{Spec{Rate: "1/day", RegionShare: 1}, "1/100day 1"},
		{Spec{Rate: "1/366day", RegionShare: 1}, "1/36600day 1"},
		{Spec{Kind: "leaky_bucket", Rate: "10/min", Burst: 3, RegionShare: 40}, "4/min 1"},
		{Spec{Kind: "fixed_window", Rate: "1000/month", RegionShare: 45}, "450/month 450"},
		{Spec{Kind: "sliding_window", Rate: "7/min", RegionShare: 50}, "3/min 3"},
		{Spec{Kind: "sliding_log", Rate: "1/min", RegionShare: 20}, "1/min 1"},
		{Spec{Kind: "concurrency", Burst: 25, RegionShare: 30}, "0/0s 7"},
		{Spec{Kind: "concurrency", Burst: 1, RegionShare: 30}, "0/0s 1"},
	} {
		r := mustCompile(t, tc.spec)
		if got := fmt.Sprint(r.Rate, " ", r.Burst); got != tc.want && (r.Kind != KindConcurrency || got[len(got)-1] != tc.want[len(tc.want)-1]) {
			t.Errorf("%+v is %s, want %s", tc.spec, got, tc.want)
		}
	}
	for field, spec := range map[string]Spec{
		"region_share": {ID: "r", Rate: "1/s", RegionShare: 101},
		"cost":         {ID: "r", Rate: "10/s", Cost: 6, RegionShare: 50},
		"rate":         {ID: "r", Rate: fmt.Sprintf("%d/366day", int64(1)<<40), RegionShare: 99},
	} {
		_, err := Compile(spec)
		var got *FieldError
		assert.True(t, errors.As(err, &got) && got.Field == field, "%+v: %v, want an error about %s", spec, err, field)
	}
	_, err := Compile(Spec{ID: "r", Rate: "1/s", RegionShare: -1})
	assert.Error(t, err, "-1% is accepted")
	_, err = Compile(Spec{ID: "r", Rate: fmt.Sprintf("%d/s", int64(maxExact)), Burst: 1, RegionShare: 99})
	assert.Error(t, err, "a rate beyond 2^53 is accepted")
}

// TestCompile_RegionShares_SumToTheRate: if the shares of all regions sum to 100 %, their rates sum exactly to the
// rate. Their capacities sum to at most the burst, plus one token for each share whose capacity would be less than
// one token.
func TestCompile_RegionShares_SumToTheRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		count := rapid.Int64Range(1, 1_000_000).Draw(rt, "count")
		spec := Spec{
			Rate:  fmt.Sprintf("%d/%dms", count, rapid.Int64Range(1, 1_000_000).Draw(rt, "ms")),
			Burst: rapid.Int64Range(1, 100_000).Draw(rt, "burst"),
		}
		full := mustCompile(t, spec)
		sum, capacity, tiny := new(big.Rat), int64(0), int64(0)
		for left := int64(100); left > 0; {
			spec.RegionShare = rapid.Int64Range(1, left).Draw(rt, "percent")
			left -= spec.RegionShare
			b := mustCompile(t, spec).limit.(bucket)
			sum.Add(sum, big.NewRat(b.num, b.s))
			capacity += b.tokens
			if spec.Burst*spec.RegionShare < 100 {
				tiny++
			}
		}
		b := full.limit.(bucket)
		want := big.NewRat(b.num, b.s)
		require.Zero(rt, sum.Cmp(want), "%+v: %s per us together, want %s", spec, sum, want)
		require.True(rt, capacity <= spec.Burst+tiny, "%+v: %d tokens together", spec, capacity)
	})
}

// mustCompile returns the rule of spec, which must be valid.
func mustCompile(t testing.TB, spec Spec) *Rule {
	t.Helper()
	if spec.ID == "" {
		spec.ID = "rule"
	}
	r, err := Compile(spec)
	require.NoError(t, err)
	return &r
}
