package redisstore

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestNewMetrics_HasEveryCauseAtZero: the first of a kind is no increase for who sees the series with it.
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
