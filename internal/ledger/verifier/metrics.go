package verifier

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

type metrics struct {
	verified    prometheus.Counter
	differences prometheus.Gauge
	unread      prometheus.Gauge
	verifiedAt  prometheus.Gauge
	sealedUntil prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{
		verified: metric.Counter(reg, "quotasvc_ledger_verified_balances_total",
			"Balances compared with the journal by the continuous verifier."),
		differences: metric.Gauge(reg, "quotasvc_ledger_verify_differences",
			"Differences between journal and balances in the newest complete pass, or in a later one that found more. Above zero: a bug, or a manual change of the tables."),
		unread: metric.Gauge(reg, "quotasvc_ledger_verify_unread_balances",
			"Balances that the newest pass could not read, because of a time-out or a lock. Above zero: the pass was not complete."),
		verifiedAt: metric.Gauge(reg, "quotasvc_ledger_verify_last_pass_timestamp_seconds",
			"Time at which the newest complete pass of the continuous verifier ended."),
		sealedUntil: metric.Gauge(reg, "quotasvc_ledger_sealed_until_timestamp_seconds",
			"End of the newest sealed day, as of the beginning of the continuous verifier's newest pass. 0: nothing was sealed."),
	}
}
