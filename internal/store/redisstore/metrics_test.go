package redisstore

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestNewMetrics_HasEveryCauseAtZero: if a series first appeared with the value 1, Prometheus would see no increase.
func TestNewMetrics_HasEveryCauseAtZero(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	NewMetrics(reg)
	n, err := testutil.GatherAndCount(reg, "quotasvc_limit_backend_failures_total")
	if err != nil || n != len(causes()) {
		t.Errorf("%d series, %v", n, err)
	}
	for _, cause := range causes() {
		if strings.ContainsAny(cause, " -") {
			t.Errorf("%q is no label", cause)
		}
	}
}
