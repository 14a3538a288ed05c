package history

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

// queue lets a few reports run at once. A bounded number of further reports waits. All other reports are refused at
// once.
type queue struct {
	slots    chan struct{}
	waiting  atomic.Int64
	finished *prometheus.CounterVec
	took     prometheus.Histogram
}

func newQueue(slots int, reg prometheus.Registerer) *queue {
	q := &queue{slots: make(chan struct{}, slots)}
	metric.GaugeFunc(reg, "quotasvc_history_reports_waiting",
		"Reports (statements, use, entries, balances of the past) that wait in the queue.",
		func() float64 { return float64(q.waiting.Load()) })
	q.finished = metric.CounterVec(reg, "quotasvc_history_reports_total",
		"Reports by outcome: ok, queue_full (refused), report_too_slow, or the code of another error.", "outcome")
	q.took = metric.Histogram(reg, "quotasvc_history_report_seconds",
		"Run time of reports, without the time in the queue.", []float64{0.005, 0.02, 0.1, 0.5, 1, 2.5})
	for _, code := range []errcode.Code{errcode.QueueFull, errcode.ReportTooSlow} {
		q.finished.WithLabelValues(string(code)) // creates the series with 0, because alerts look for an increase
	}
	return q
}

// enter waits for a slot. The caller frees the slot when it calls leave with the report's error.
func (q *queue) enter(ctx context.Context) (leave func(error), err error) {
	select {
	case q.slots <- struct{}{}:
	default:
		if err := q.wait(ctx); err != nil {
			q.finished.WithLabelValues(string(errcode.QueueFull)).Inc()
			return nil, err
		}
	}
	began := time.Now()
	return func(err error) {
		<-q.slots
		outcome := "ok"
		if err != nil {
			outcome = string(errcode.Of(err))
		}
		q.finished.WithLabelValues(outcome).Inc()
		q.took.Observe(time.Since(began).Seconds())
	}, nil
}

func (q *queue) wait(ctx context.Context) error {
	full := &errcode.Error{Code: errcode.QueueFull, RetryAfter: time.Second, Detail: "too many reports are waiting"}
	if q.waiting.Add(1) > queueMax {
		q.waiting.Add(-1)
		return full
	}
	defer q.waiting.Add(-1)
	timer := time.NewTimer(queueWait)
	defer timer.Stop()
	select {
	case q.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return full
	case <-ctx.Done():
		full.Cause = ctx.Err()
		return full
	}
}
