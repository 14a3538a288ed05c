package verifier

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	verified    prometheus.Counter
	differences prometheus.Gauge
	unread      prometheus.Gauge
	verifiedAt  prometheus.Gauge
	sealedUntil prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		verified: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quotasvc_ledger_verified_balances_total",
			Help: "Balances compared with the journal by the continuous verifier.",
		}),
		differences: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_ledger_verify_differences",
			Help: "Differences between journal and balances in the newest complete pass, or in a later one that found more. Above zero: a bug, or a manual change of the tables.",
		}),
		unread: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_ledger_verify_unread_balances",
			Help: "Balances that the newest pass could not read, because of a time-out or a lock. Above zero: the pass was not complete.",
		}),
		verifiedAt: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_ledger_verify_last_pass_timestamp_seconds",
			Help: "Time at which the newest complete pass of the continuous verifier ended.",
		}),
		sealedUntil: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "quotasvc_ledger_sealed_until_timestamp_seconds",
			Help: "End of the newest sealed day, as of the beginning of the continuous verifier's newest pass. 0: nothing was sealed.",
		}),
	}
	reg.MustRegister(m.verified, m.differences, m.unread, m.verifiedAt, m.sealedUntil)
	return m
}
