package pg

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/metric"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

type metrics struct {
	failedAttempts *prometheus.CounterVec
	isolated       prometheus.Counter
	decided        *prometheus.CounterVec
	monthsAhead    prometheus.Gauge
	rolledUntil    prometheus.Gauge
	setAside       prometheus.Gauge
	refused        *prometheus.CounterVec
	parked         prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		failedAttempts: metric.CounterVec(reg, "quotasvc_ledger_failed_attempts_total",
			"Batch transactions that failed, by verdict: retry (run again), unknown (COMMIT was not answered; run again), data (an operation is refused by the database).",
			"verdict"),
		isolated: metric.Counter(reg, "quotasvc_ledger_isolated_operations_total",
			"Operations that the ledger accepted and the database refused. Each is a bug."),
		decided: metric.CounterVec(reg, "quotasvc_ledger_operations_total",
			"Operations answered, by kind and outcome: ok, replayed, or the code of the error.", "kind", "outcome"),
		monthsAhead: metric.Gauge(reg, "quotasvc_ledger_partition_months_ahead",
			"Months after the current one that have a partition of entries, up to the first that has none. -1: not even the current month has one."),
	}
	m.rolledUntil = metric.Gauge(reg, "quotasvc_ledger_last_roll_timestamp_seconds",
		"Instant up to which the newest finished roll of any process has worked off due events; 0: no roll has finished. Updated every hour.")
	m.setAside = metric.Gauge(reg, "quotasvc_ledger_roll_set_aside_balances",
		"Balances that the newest finished roll of any process could not write; its log names each. Updated every hour.")
	m.monthsAhead.Set(journal.MonthsAhead) // until the number is known: alerts fire below this value
	m.refused = metric.CounterVec(reg, "quotasvc_ledger_refusals_total",
		"Operations that were not decided, by reason. away: PostgreSQL is known to be away, nothing was tried. locked: another transaction kept the balance locked. late: no turn in time.",
		"reason")
	m.parked = metric.Counter(reg, "quotasvc_ledger_set_aside_operations_total",
		"Operations that were set aside because another transaction had locked their balances.")
	for _, r := range reasons() {
		m.refused.WithLabelValues(string(r))
	}
	// Alerts look for an increase. A series that first appears with the value 1 shows no increase, so these series
	// start at 0.
	for _, kind := range ledger.Kinds() {
		m.decided.WithLabelValues(string(kind), string(errcode.QueueFull))
		m.decided.WithLabelValues(string(kind), string(errcode.OutcomeUnknown))
	}
	m.failedAttempts.WithLabelValues(string(verdictUnknown))
	return m
}

// watch registers the gauges that read the ledger's state.
func (m *metrics) watch(reg prometheus.Registerer, l *Ledger) {
	metric.GaugeFunc(reg, "quotasvc_ledger_shard_groups",
		"Groups of shards over which a Citus cluster divides the tenants; 0: the database is no such cluster.", func() float64 {
			if l.cluster == nil {
				return 0
			}
			return float64(l.cluster.Groups.Count())
		})
	metric.GaugeFunc(reg, "quotasvc_ledger_nodes_reached",
		"Nodes of a Citus cluster to which batches are sent without the coordinator.",
		func() float64 { return float64(l.nodes.Reached()) })
	metric.Flag(reg, "quotasvc_ledger_breaker_open",
		"1 while PostgreSQL is known to be away or read-only, and operations are refused at once; else 0.",
		func() bool { return l.breaker.Cause() != nil })
	metric.GaugeFunc(reg, "quotasvc_ledger_locked_balances",
		"Balances that another transaction has locked and for which operations wait.",
		func() float64 { return float64(l.lockWait.lockedBalances()) })
	metric.GaugeFunc(reg, "quotasvc_ledger_clock_skew_seconds",
		"PostgreSQL's clock minus this instance's, as far as the newest reading proves it. Read at least every 5 s.", func() float64 {
			skew, _ := l.clock.State()
			return skew.Seconds()
		})
	metric.Flag(reg, "quotasvc_ledger_clocks_disagree",
		"1 while PostgreSQL's clock and this instance's differ by more than QUOTASVC_CLOCK_SKEW_MAX: decisions go by the earlier one. Else 0.",
		func() bool {
			_, agree := l.clock.State()
			return !agree
		})
}
