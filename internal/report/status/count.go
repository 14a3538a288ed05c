package status

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// requestsMetric is the name of the metric that counts the answered requests of the API by their status.
const requestsMetric = "quotasvc_http_requests_total"

// count reads the counters of requests. They do not exist before the first request. If other collectors fail and these
// counters can be read, it returns no error.
func count(from prometheus.Gatherer) (Requests, error) {
	families, err := from.Gather()
	var out Requests
	for _, f := range families {
		if f.GetName() != requestsMetric {
			continue
		}
		for _, m := range f.GetMetric() {
			n := int64(m.GetCounter().GetValue())
			out.Answered += n
			for _, l := range m.GetLabel() {
				if l.GetName() == "status" {
					out.add(l.GetValue(), n)
				}
			}
		}
		return out, nil
	}
	return out, err
}

// add adds n requests to Failed or Refused, if their status is a failure or a refusal.
func (r *Requests) add(status string, n int64) {
	code, err := strconv.Atoi(status)
	switch {
	case err != nil:
	case code >= http.StatusInternalServerError:
		r.Failed += n
	case code == http.StatusPaymentRequired, code == http.StatusForbidden, code == http.StatusTooManyRequests:
		r.Refused += n
	}
}
