package ratelimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ratelimit/replica"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

func TestExplain_EveryKind(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 25, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		spec     rule.Spec
		replicas int
		want     rule.Explanation
	}{
		// InAnySecond is 200: 100 tokens at once, and 100 tokens that return within the second. This is the most
		// frequent question about a rule.
		{rule.Spec{Rate: "100/s"}, 1, rule.Explanation{
			Num: 1, Units: 10_000, Capacity: 100, InAnySecond: 200, LongestWait: time.Second, Fills: time.Second, MaxTTL: 7 * time.Second, Share: 100,
			ShareRate: rule.Rate{Count: 100, Period: time.Second},
		}},
		{rule.Spec{Rate: "100/s", Debt: 50}, 1, rule.Explanation{
			Num: 1, Units: 10_000, Capacity: 100, InAnySecond: 200, LongestWait: 1500 * time.Millisecond, Fills: time.Second, MaxTTL: 7500 * time.Millisecond,
			Share: 100, ShareRate: rule.Rate{Count: 100, Period: time.Second},
		}},
		{rule.Spec{Rate: "7/min", Burst: 20}, 4, rule.Explanation{
			Num: 7, Units: 60_000_000, Capacity: 20, InAnySecond: 20, LongestWait: 171_428_572 * time.Microsecond, Fills: 171_428_572 * time.Microsecond, MaxTTL: 177_428_572 * time.Microsecond,
			Share: 5, ShareRate: rule.Rate{Count: 7, Period: 4 * time.Minute},
		}},
		{rule.Spec{Rate: "10/s", Burst: 2, Kind: "leaky_bucket"}, 4, rule.Explanation{
			Num: 1, Units: 100_000, Capacity: 2, InAnySecond: 12, LongestWait: 200 * time.Millisecond, Fills: 200 * time.Millisecond, MaxTTL: 6200 * time.Millisecond,
			Share: 1, ShareRate: rule.Rate{Count: 10, Period: 4 * time.Second},
		}},
		{rule.Spec{Rate: "9/day", Kind: "fixed_window", Zone: zone(t, "Europe/Berlin")}, 2, rule.Explanation{
			Capacity: 9, InAnySecond: 18, LongestWait: 26 * time.Hour, MaxTTL: 26*time.Hour + 14*time.Minute + 50_280_512*time.Microsecond, Share: 4, ShareRate: rule.Rate{Count: 4, Period: 24 * time.Hour},
			WindowStart: time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC), WindowEnd: time.Date(2026, 10, 25, 23, 0, 0, 0, time.UTC),
		}},
		{rule.Spec{Rate: "9/250ms", Kind: "fixed_window"}, 1, rule.Explanation{
			Capacity: 9, InAnySecond: 45, LongestWait: 250 * time.Millisecond, MaxTTL: 6_767_168 * time.Microsecond, Share: 9,
			ShareRate: rule.Rate{Count: 9, Period: 250 * time.Millisecond}, WindowStart: now, WindowEnd: now.Add(250 * time.Millisecond),
		}},
		{rule.Spec{Rate: "60/min", Kind: "sliding_window"}, 7, rule.Explanation{
			Capacity: 60, InAnySecond: 61, LongestWait: 2 * time.Minute, MaxTTL: 126 * time.Second, Share: 8, ShareRate: rule.Rate{Count: 8, Period: time.Minute},
		}},
		{rule.Spec{Rate: "1000/h", Kind: "sliding_log"}, 1, rule.Explanation{
			Capacity: 1000, InAnySecond: 1000, LongestWait: time.Hour, MaxTTL: time.Hour + 6*time.Second, Share: 1000, ShareRate: rule.Rate{Count: 1000, Period: time.Hour},
		}},
	} {
		r := compile(t, tc.spec)
		holders, share := replica.Anonymous(tc.replicas).Share(r.Burst)
		got := r.Explain(now, nil, false, holders, share)
		tc.want.Holders = int64(tc.replicas)
		tc.want.Sustained, tc.want.KeyBytes = r.Rate, got.KeyBytes // measured in TestBucket_TakesAtMost170Bytes
		assert.True(t, got == tc.want, "%+v of %d replicas is\n%+v, want\n%+v", tc.spec, tc.replicas, got, tc.want)
		if log := r.Kind == rule.KindSlidingLog; got.KeyBytes < 100 || got.KeyBytes > 200 && !log || log && got.KeyBytes < 7000 {
			t.Errorf("%+v takes %d bytes", tc.spec, got.KeyBytes)
		}
	}
}

func TestExplain_Portions_HoldersAndShare(t *testing.T) {
	t.Parallel()
	five := replica.Known(1, []uint64{2, 3, 4, 5}, 1)
	for _, tc := range []struct {
		spec           rule.Spec
		holders, share int64
		rate           rule.Rate
	}{
		{rule.Spec{Rate: "10/s", Burst: 2}, 2, 1, rule.Rate{Count: 10, Period: 2 * time.Second}},
		{rule.Spec{Rate: "10/s", Burst: 12}, 5, 2, rule.Rate{Count: 10, Period: 5 * time.Second}},
		{rule.Spec{Rate: "3/min", Kind: "fixed_window"}, 3, 1, rule.Rate{Count: 1, Period: time.Minute}},
	} {
		r := compile(t, tc.spec)
		holders, share := five.Share(r.Burst)
		e := r.Explain(time.UnixMicro(worldStart), nil, false, holders, share)
		assert.True(t, e.Holders == tc.holders && e.Share == tc.share && e.ShareRate == tc.rate,
			"%+v: %d hold %d at %s", tc.spec, e.Holders, e.Share, e.ShareRate)
	}
}
