package ratelimit

import (
	"testing"
	"time"
)

func TestExplainSaysWhatARuleComesTo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 25, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		spec     Spec
		replicas int
		want     Explanation
	}{
		// 100 at once and 100 more as they come back: what people ask about most.
		{Spec{Rate: "100/s"}, 1, Explanation{
			Num: 1, Units: 10_000, Capacity: 100, InAnySecond: 200, LongestWait: time.Second, MaxTTL: 7 * time.Second, Share: 100,
			ShareRate: Rate{Count: 100, Period: time.Second},
		}},
		{Spec{Rate: "7/min", Burst: 20}, 4, Explanation{
			Num: 7, Units: 60_000_000, Capacity: 20, InAnySecond: 20, LongestWait: 171_428_572 * time.Microsecond, MaxTTL: 177_428_572 * time.Microsecond,
			Share: 5, ShareRate: Rate{Count: 7, Period: 4 * time.Minute},
		}},
		{Spec{Rate: "10/s", Burst: 2, Kind: "leaky_bucket"}, 4, Explanation{
			Num: 1, Units: 100_000, Capacity: 2, InAnySecond: 12, LongestWait: 200 * time.Millisecond, MaxTTL: 6200 * time.Millisecond,
			Share: 1, ShareRate: Rate{Count: 10, Period: 4 * time.Second},
		}},
		{Spec{Rate: "9/day", Kind: "fixed_window", Zone: zone(t, "Europe/Berlin")}, 2, Explanation{
			Capacity: 9, InAnySecond: 18, LongestWait: 26 * time.Hour, MaxTTL: 26*time.Hour + 6*time.Second, Share: 4, ShareRate: Rate{Count: 4, Period: day},
			WindowStart: time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC), WindowEnd: time.Date(2026, 10, 25, 23, 0, 0, 0, time.UTC),
		}},
		{Spec{Rate: "9/250ms", Kind: "fixed_window"}, 1, Explanation{
			Capacity: 9, InAnySecond: 45, LongestWait: 250 * time.Millisecond, MaxTTL: 6250 * time.Millisecond, Share: 9,
			ShareRate: Rate{Count: 9, Period: 250 * time.Millisecond}, WindowStart: now, WindowEnd: now.Add(250 * time.Millisecond),
		}},
		{Spec{Rate: "60/min", Kind: "sliding_window"}, 7, Explanation{
			Capacity: 60, InAnySecond: 61, LongestWait: 2 * time.Minute, MaxTTL: 126 * time.Second, Share: 8, ShareRate: Rate{Count: 8, Period: time.Minute},
		}},
		{Spec{Rate: "1000/h", Kind: "sliding_log"}, 1, Explanation{
			Capacity: 1000, InAnySecond: 1000, LongestWait: time.Hour, MaxTTL: time.Hour + 6*time.Second, Share: 1000, ShareRate: Rate{Count: 1000, Period: time.Hour},
		}},
	} {
		rule := compile(t, tc.spec)
		got := rule.Explain(now, nil, false, Unnamed(tc.replicas))
		tc.want.Holders = int64(tc.replicas)
		tc.want.Sustained, tc.want.KeyBytes = rule.Rate, got.KeyBytes // measured in TestABucketTakesAtMost170Bytes
		if got != tc.want {
			t.Errorf("%+v of %d replicas is\n%+v, want\n%+v", tc.spec, tc.replicas, got, tc.want)
		}
		if log := rule.Kind == KindSlidingLog; got.KeyBytes < 100 || got.KeyBytes > 200 && !log || log && got.KeyBytes < 7000 {
			t.Errorf("%+v takes %d bytes", tc.spec, got.KeyBytes)
		}
	}
}

func TestExplainSaysHowManyHoldWhatDoesNotDivide(t *testing.T) {
	t.Parallel()
	five := named(1, []uint64{2, 3, 4, 5}, 1)
	for _, tc := range []struct {
		spec           Spec
		holders, share int64
		rate           Rate
	}{
		{Spec{Rate: "10/s", Burst: 2}, 2, 1, Rate{Count: 10, Period: 2 * time.Second}},
		{Spec{Rate: "10/s", Burst: 12}, 5, 2, Rate{Count: 10, Period: 5 * time.Second}},
		{Spec{Rate: "3/min", Kind: "fixed_window"}, 3, 1, Rate{Count: 1, Period: time.Minute}},
	} {
		e := compile(t, tc.spec).Explain(time.UnixMicro(worldStart), nil, false, five)
		if e.Holders != tc.holders || e.Share != tc.share || e.ShareRate != tc.rate {
			t.Errorf("%+v: %d hold %d at %s", tc.spec, e.Holders, e.Share, e.ShareRate)
		}
	}
}
