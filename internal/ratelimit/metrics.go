package ratelimit

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// Metrics are the Prometheus metrics of a process's limits. The values of labels are names of rules
// (rule.Rule.Metric) or constants of the program, for example a kind, an outcome or a mode. They are never a tenant
// or a subject.
type Metrics struct {
	decisions   *prometheus.CounterVec
	vectorSize  prometheus.Histogram
	rebased     prometheus.Counter
	corrupt     prometheus.Counter
	stale       prometheus.Counter
	raised      prometheus.Counter
	degraded    prometheus.Gauge
	localLevels prometheus.Gauge
	near        *prometheus.CounterVec
	retryAfter  prometheus.Histogram
	leases      *prometheus.CounterVec
	held        *leaseGauge

	stagedRefunds *prometheus.CounterVec
	degradedRules *degradedRules
	passed        *passCounters // of decisions
}

// NewMetrics creates the metrics and registers them. It panics if reg already has metrics of these names, which is a
// programming error. If reg is nil, the metrics are not registered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		decisions: metric.CounterVec(reg, "quotasvc_limit_decisions_total",
			"Verdicts per rule, of checks and charges. Only shadow rules have the outcomes would_deny and would_never.",
			"rule", "kind", "outcome", "mode"),
		vectorSize: metric.Histogram(reg, "quotasvc_limit_vector_requests",
			"Requests decided in one script call.", prometheus.ExponentialBuckets(1, 2, 7)), // 1..MaxVector
		rebased: metric.Counter(reg, "quotasvc_limit_clock_rebased_total",
			"Buckets moved back in time because the clock of Redis was set back by more than 5 s."),
		corrupt: metric.Counter(reg, "quotasvc_limit_corrupt_total",
			"Decisions for which Redis had a stored value that is not a bucket."),
		stale: metric.Counter(reg, "quotasvc_limit_stale_windows_total",
			"Requests sent to Redis twice because its clock was in another calendar window."),
		raised: metric.Counter(reg, "quotasvc_limit_raised_total",
			"Buckets in Redis that this process raised, by what it charged while Redis was away or to a level that Redis had lost."),
		degraded: metric.Gauge(reg, "quotasvc_limit_degraded",
			"1 while Redis, or a master of its cluster, is away and limits are decided locally."),
		stagedRefunds: metric.CounterVec(reg, "quotasvc_limit_slot_refunds_total",
			"Charges in one slot of a cluster that were refunded because another slot denied or failed, by outcome: done or lost.",
			"outcome"),
		localLevels: metric.Gauge(reg, "quotasvc_limit_local_levels", "Bucket levels in the memory of the process."),
		near: metric.CounterVec(reg, "quotasvc_limit_near_total",
			"Verdicts that passed and left at most a fifth of the rule's capacity.", "rule"),
		// The histogram's buckets reach from 1 ms, the interval of 1,000 requests a second, to most of a day.
		retryAfter: metric.Histogram(reg, "quotasvc_limit_retry_after_seconds",
			"RetryAfter of denials by enforced rules.", prometheus.ExponentialBuckets(1e-3, 4, 14)),
		degradedRules: newDegradedRules(reg),
		leases: metric.CounterVec(reg, "quotasvc_limit_leases_total",
			"Lease requests of concurrency limits by operation (acquire, renew, release, count) and outcome.",
			"rule", "operation", "outcome", "mode"),
		held: newLeaseGauge(),
	}
	m.passed = &passCounters{decisions: m.decisions}
	if reg != nil {
		reg.MustRegister(m.held)
	}
	return m
}

// outcomeLabel returns the value of the label outcome for a verdict.
func outcomeLabel(v Verdict) string {
	switch {
	case v.Unknown:
		return "error"
	case v.Allowed:
		return "allow"
	case v.Never && v.Shadow:
		return "would_never"
	case v.Never:
		return "never"
	case v.Shadow:
		return "would_deny"
	default:
		return "deny"
	}
}

// nearPart defines when a bucket is near its limit: at most a fifth of the capacity is left, that is, 80 % is used.
const nearPart = 5

// count counts a decision's verdicts.
func (m *Metrics) count(d Decision) {
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		if v.Mode == ModeRedis && v.Allowed && !v.Unknown {
			m.passed.of(v.Rule).Inc()
		} else {
			m.decisions.WithLabelValues(v.Rule.Metric, v.Rule.Kind.String(), outcomeLabel(*v), v.Mode.String()).Inc()
		}
		m.degradedRules.note(v.Rule.Metric, d.Degraded, v.Mode)
		switch {
		case v.Unknown:
		case v.Allowed:
			m.countNear(v.Rule.Metric, v.Remaining, v.Limit)
		case !v.Shadow && !v.Never:
			m.retryAfter.Observe(v.RetryAfter.Seconds())
		}
	}
}

func (m *Metrics) countNear(rule string, remaining, limit int64) {
	if remaining <= limit/nearPart {
		m.near.WithLabelValues(rule).Inc()
	}
}

// Forget drops the series of labels that no rule has any more. A decision that runs at the same time may create a
// series again. A later call drops it.
func (m *Metrics) Forget(labels []string) {
	for _, rule := range labels {
		of := prometheus.Labels{"rule": rule}
		m.passed.forget(rule)
		m.near.DeletePartialMatch(of)
		m.leases.DeletePartialMatch(of)
		m.degradedRules.forget(rule)
	}
}

// passCounters holds the counters of verdicts that passed in Redis, as nearly all verdicts do. It holds them because
// a lookup of a counter by its labels takes longer than the count itself.
//
// mu is held for changes, so that a counter and its series are always added and dropped together. Otherwise, if a
// dropped rule is created again, the old counter would count without a series.
type passCounters struct {
	decisions *prometheus.CounterVec
	mu        sync.Mutex
	all       sync.Map // of passKey: prometheus.Counter
}

type passKey struct {
	rule string
	kind rule.Kind
}

// of returns the counter of a rule.
func (p *passCounters) of(r *rule.Rule) prometheus.Counter {
	key := passKey{r.Metric, r.Kind}
	if c, known := p.all.Load(key); known {
		return c.(prometheus.Counter)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.decisions.WithLabelValues(r.Metric, r.Kind.String(), outcomeLabel(Verdict{Allowed: true}), ModeRedis.String())
	p.all.Store(key, c)
	return c
}

// forget drops the counters of a rule and its series, of all outcomes.
func (p *passCounters) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decisions.DeletePartialMatch(prometheus.Labels{"rule": id})
	for k := rule.KindTokenBucket; k <= rule.KindConcurrency; k++ {
		p.all.Delete(passKey{id, k})
	}
}

// degradedRules is a gauge of the rules whose last decision was made without Redis, although Redis is configured.
type degradedRules struct {
	gauge *prometheus.GaugeVec
	some  atomic.Bool // whether `all` has any rule; normally it has none, and then the method note takes no lock

	mu  sync.Mutex
	all map[string]bool
}

func newDegradedRules(reg prometheus.Registerer) *degradedRules {
	return &degradedRules{
		all: make(map[string]bool),
		gauge: metric.GaugeVec(reg, "quotasvc_limit_rule_degraded",
			"1 for a rule whose last decision was made without Redis because Redis was away.", "rule"),
	}
}

// note records whether a rule was decided in Redis or in this process. A remembered denial does not show whether
// Redis answers, so it changes nothing.
func (r *degradedRules) note(rule string, degraded bool, mode Mode) {
	switch {
	case degraded && mode == ModeLocal:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all[rule] = true
		r.some.Store(true)
		r.gauge.WithLabelValues(rule).Set(1)
	case mode == ModeRedis && r.some.Load():
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.all[rule] {
			r.over(rule)
		}
	}
}

// recovered removes all rules, because Redis decides again.
func (r *degradedRules) recovered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for rule := range r.all {
		r.over(rule)
	}
}

// over removes a rule, because Redis decides it again. The caller holds mu.
func (r *degradedRules) over(rule string) {
	r.gauge.WithLabelValues(rule).Set(0)
	delete(r.all, rule)
	r.some.Store(len(r.all) > 0)
}

func (r *degradedRules) forget(rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, rule)
	r.some.Store(len(r.all) > 0)
	r.gauge.DeleteLabelValues(rule)
}
