package ledger

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	failedAttempts *prometheus.CounterVec
	isolated       prometheus.Counter
	decided        *prometheus.CounterVec
	lateEntries    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		failedAttempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_ledger_failed_attempts_total",
			Help: "Batch transactions that failed, by what followed: retry, unknown (run again after a lost COMMIT answer), data (bisected).",
		}, []string{"verdict"}),
		isolated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_ledger_isolated_operations_total",
			Help: "Operations the database refused although the ledger had accepted them. Every one is a bug.",
		}),
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quotasvc_ledger_operations_total",
			Help: "Operations answered, by kind and outcome code (ok, replayed, or the error's code).",
		}, []string{"kind", "outcome"}),
		lateEntries: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_ledger_default_partition_rows",
			Help: "Rows in the DEFAULT partition of entries. Above zero: a monthly partition was not made in time.",
		}),
	}
	reg.MustRegister(m.failedAttempts, m.isolated, m.decided, m.lateEntries)
	return m
}
