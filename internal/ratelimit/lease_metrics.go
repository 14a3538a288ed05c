package ratelimit

import (
	"cmp"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// leaseGauge is a collector. For each rule it reports the number of leases that this process has granted and that
// have not ended.
type leaseGauge struct {
	desc *prometheus.Desc

	mu     sync.Mutex
	counts []func() map[string]int // by rule
}

func newLeaseGauge() *leaseGauge {
	return &leaseGauge{desc: prometheus.NewDesc(
		"quotasvc_limit_leases_held",
		"Leases that this process granted or renewed and that were neither released here nor have ended.",
		[]string{"rule"}, nil,
	)}
}

func (g *leaseGauge) track(count func() map[string]int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counts = append(g.counts, count)
}

// Describe implements prometheus.Collector.
func (g *leaseGauge) Describe(ch chan<- *prometheus.Desc) { ch <- g.desc }

// Collect implements prometheus.Collector.
func (g *leaseGauge) Collect(ch chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := make(map[string]int)
	for _, count := range g.counts {
		for rule, n := range count() {
			sum[rule] += n
		}
	}
	for rule, n := range sum {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(n), rule)
	}
}

// countLease counts the outcome of a call. For a release it sets the label rule only if the lease was known, because
// the id of an unknown lease can contain any rule.
func (m *Metrics) countLease(c *leaseCall, outcome string, mode Mode) {
	id := ""
	switch {
	case c.rule != nil:
		id = c.rule.Metric
	case outcome == "done":
		id = cmp.Or(c.id.Metric, c.id.Rule)
	}
	m.leases.WithLabelValues(id, c.op.String(), outcome, mode.String()).Inc()
	if c.op == leaseAcquire {
		m.decisions.WithLabelValues(id, rule.KindConcurrency.String(), outcome, mode.String()).Inc()
	}
}

// answered updates the other metrics for a result: whether the rule is degraded or near its limit, and the time to wait
// after a denial.
func (m *Metrics) answered(c *leaseCall, out *Lease) {
	m.degradedRules.note(c.rule.Metric, out.Degraded, out.Mode)
	switch {
	case c.op != leaseAcquire || out.Unknown:
	case out.Held:
		m.countNear(c.rule.Metric, out.Remaining, out.Limit)
	default:
		m.retryAfter.Observe(out.RetryAfter.Seconds())
	}
}
