package redisstore

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
)

// TestNewMetrics_HasEveryCauseAtZero: if a series first appeared with the value 1, Prometheus would see no increase.
func TestNewMetrics_HasEveryCauseAtZero(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	NewMetrics(reg)
	n, err := testutil.GatherAndCount(reg, "quotasvc_limit_backend_failures_total")
	assert.True(t, err == nil && n == len(causes()), "%d series, %v", n, err)
	for _, cause := range causes() {
		assert.False(t, strings.ContainsAny(cause, " -"), "%q is no label", cause)
	}
}
