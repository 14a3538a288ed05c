package verifier

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestWatch_Difference_IsReported(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	mustDo(b, debitOf("acme", "k1", 3))
	b.exec("UPDATE balances SET used = used + 1, head_remaining = head_remaining - 1")
	registry := prometheus.NewRegistry()
	b.open(func(c *Config) { c.Every, c.Metrics = time.Millisecond, registry })
	testenv.Eventually(t, func() bool { return gauge(t, registry, "quotasvc_ledger_verify_differences") > 0 })
	b.exec("UPDATE balances SET used = used - 1, head_remaining = head_remaining + 1")
	testenv.Eventually(t, func() bool { return gauge(t, registry, "quotasvc_ledger_verify_differences") == 0 })
}

func gauge(t *testing.T, g prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name && f.GetType() == dto.MetricType_GAUGE {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no gauge %s", name)
	return 0
}
