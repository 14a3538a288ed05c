package ledger

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	failedAttempts *prometheus.CounterVec
	isolated       prometheus.Counter
	decided        *prometheus.CounterVec
	lateEntries    prometheus.Gauge
	rolledUntil    prometheus.Gauge
	verified       prometheus.Counter
	differences    prometheus.Gauge
	verifiedAt     prometheus.Gauge
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
	m.rolledUntil = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "quotasvc_ledger_last_roll_timestamp_seconds",
		Help: "Until when the newest finished roll of any process has worked off what was due; 0: there was none. Read every hour.",
	})
	m.verified = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "quotasvc_ledger_verified_balances_total",
		Help: "Balances compared with the journal by the continuous verifier.",
	})
	m.differences = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "quotasvc_ledger_verify_differences",
		Help: "Differences between journal and balances found by the newest complete pass. Anything above zero is a bug or a change by hand.",
	})
	m.verifiedAt = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "quotasvc_ledger_verify_last_pass_timestamp_seconds",
		Help: "When the newest complete pass of the continuous verifier ended.",
	})
	// What an alert looks for must be there before it happens: a series that begins with its first increase has none.
	for _, kind := range []Kind{KindDebit, KindGrant, KindHold, KindCapture, KindRelease, KindExtend, KindRefund, KindVoid, KindAdjust} {
		m.decided.WithLabelValues(string(kind), string(CodeQueueFull))
		m.decided.WithLabelValues(string(kind), string(CodeOutcomeUnknown))
	}
	m.failedAttempts.WithLabelValues(verdictUnknown.String())
	reg.MustRegister(m.failedAttempts, m.isolated, m.decided, m.lateEntries, m.rolledUntil, m.verified, m.differences, m.verifiedAt)
	return m
}
