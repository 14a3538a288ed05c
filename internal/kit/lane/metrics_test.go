package lane_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/lane"
)

// values returns the metrics of the lane called name: the value of each gauge, and the count and sum of each
// histogram.
func values(t *testing.T, reg *prometheus.Registry, name string) map[string]float64 {
	families, err := reg.Gather()
	require.NoError(t, err)
	got := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			require.Len(t, m.GetLabel(), 1)
			if m.GetLabel()[0].GetValue() != name {
				continue
			}
			if h := m.GetHistogram(); h != nil {
				got[f.GetName()+"_count"] = float64(h.GetSampleCount())
				got[f.GetName()+"_sum"] = h.GetSampleSum()
			} else {
				got[f.GetName()] = m.GetGauge().GetValue()
			}
		}
	}
	return got
}

func TestMetrics_DepthBatchSizeAndWaitPerLaneName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		cfg := wide
		cfg.Metrics = lane.NewMetrics(reg)
		cfg.Name = "other"
		other := newRig(t, cfg, nil)
		cfg.Name = "writer"
		r, twin := newRig(t, cfg, nil), newRig(t, cfg, nil)

		r.do(1)
		r.do(2)
		r.do(3)
		time.Sleep(time.Second) // by the bubble's clock, so items 2 and 3 wait for a second
		require.Equal(t, map[string]float64{
			"quotasvc_lane_depth_items":        2,
			"quotasvc_lane_batch_items_count":  1,
			"quotasvc_lane_batch_items_sum":    1,
			"quotasvc_lane_wait_seconds_count": 1,
			"quotasvc_lane_wait_seconds_sum":   0,
		}, values(t, reg, "writer"))
		r.next()
		r.next()
		want := map[string]float64{
			"quotasvc_lane_depth_items":        0,
			"quotasvc_lane_batch_items_count":  2,
			"quotasvc_lane_batch_items_sum":    3,
			"quotasvc_lane_wait_seconds_count": 3,
			"quotasvc_lane_wait_seconds_sum":   2,
		}
		require.Equal(t, want, values(t, reg, "writer"))
		require.Zero(t, values(t, reg, "other")["quotasvc_lane_batch_items_count"])

		r.stop()
		twin.stop()
		other.stop()
		delete(want, "quotasvc_lane_depth_items") // a stopped lane has no queue
		require.Equal(t, want, values(t, reg, "writer"))
	})
}
