package bench

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

const (
	// Histograms contain latencies from a microsecond to a minute, with three significant digits.
	latencyMaxMicros = int64(time.Minute / time.Microsecond)
	latencyDigits    = 3

	// drainMax is the time after the end of an open loop in which requests that were due before its end may finish.
	drainMax = 5 * time.Second

	openRateMax = 200_000 // maximum requests/s of an open loop; it limits the queue of due requests
)

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, latencyMaxMicros, latencyDigits)
}

func percentilesOf(h *hdrhistogram.Histogram) report.Latency {
	return report.Latency{
		P50: h.ValueAtQuantile(50), P90: h.ValueAtQuantile(90), P99: h.ValueAtQuantile(99),
		P999: h.ValueAtQuantile(99.9), Max: h.Max(),
	}
}

// sample is the result of one slice of load.
type sample struct {
	units   int64 // requests with answer 200; for batches, their accepted debits
	errors  int64 // requests with another answer, and refused debits or checks of batches
	sent    int64
	elapsed time.Duration
	latency *hdrhistogram.Histogram // latencies in µs
	answers map[int]int64           // requests by their status; 0: no answer
}

func (s *sample) rate() float64 { return float64(s.units) / s.elapsed.Seconds() }

// worker is the part of a sample that one caller has measured.
type worker struct {
	units, errors, sent int64
	latency             *hdrhistogram.Histogram
	answers             map[int]int64
	err                 error
}

func (w *worker) init() { w.latency, w.answers = newHistogram(), map[int]int64{} }

// outcome is the result of one request.
type outcome struct {
	status  int
	units   int // accepted units if the status is 200
	refused int // refused debits or checks of a batch
}

func (w *worker) note(o outcome, took time.Duration) {
	w.sent++
	w.answers[o.status]++
	if o.status == http.StatusOK {
		w.units += int64(o.units)
		w.errors += int64(o.refused)
	} else {
		w.errors++
	}
	_ = w.latency.RecordValue(min(max(took.Microseconds(), 1), latencyMaxMicros)) // within the histogram's bounds
}

func gather(workers []worker, elapsed time.Duration) (sample, error) {
	out := sample{elapsed: elapsed, latency: newHistogram(), answers: map[int]int64{}}
	var errs []error
	for i := range workers {
		w := &workers[i]
		out.units += w.units
		out.errors += w.errors
		out.sent += w.sent
		out.latency.Merge(w.latency)
		for status, n := range w.answers {
			out.answers[status] += n
		}
		if w.err != nil && len(errs) < 3 {
			errs = append(errs, w.err)
		}
	}
	return out, errors.Join(errs...)
}

// errEnough is the error with which the function `one` ends its caller early. It does not count as an error.
var errEnough = errors.New("enough")

// closedLoop keeps n callers busy for the duration d. Each caller calls the function `one` with its own number, waits
// for the result, and repeats.
func closedLoop(ctx context.Context, n int, d time.Duration, one func(caller int) (outcome, error)) (sample, error) {
	workers := make([]worker, n)
	start := time.Now()
	end := start.Add(d)
	var wg sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		w.init()
		wg.Go(func() {
			now := time.Now()
			for now.Before(end) && ctx.Err() == nil {
				o, err := one(i)
				if errors.Is(err, errEnough) {
					return
				}
				if err != nil {
					w.err = err
					return
				}
				then := now
				now = time.Now()
				w.note(o, now.Sub(then))
			}
		})
	}
	wg.Wait()
	s, err := gather(workers, time.Since(start))
	return s, errors.Join(err, ctx.Err())
}

// steady is a load at a fixed rate.
type steady struct {
	t       *template
	tenants int // number of tenants
	rate    int // requests/s, at most openRateMax
	d       time.Duration
	drain   time.Duration // time after d in which requests that were due during d may still be sent
	tick    time.Duration // interval at which the sender looks for due requests; it increases their latency

	// watch is called for each answer with the time at which the request was due, since the start, and with its
	// latency. Callers call it concurrently. Nil: answers are not watched.
	watch func(due, took time.Duration)

	// late is the maximum delay of a request. A request that would be sent later is not sent and counts as an error.
	// 0: no maximum.
	late time.Duration
}

// openLoop sends requests at a rate, independent of how long answers take. The latency of a request counts from the
// time when it was due, so it includes the wait for a free connection. A request that is not sent by the end of the
// drain counts as an error.
func openLoop(ctx context.Context, clients []*client, seq *atomic.Uint64, load steady) (sample, error) {
	d, t, rate := load.d, load.t, min(load.rate, openRateMax)
	total := int(float64(rate) * d.Seconds())
	due := make(chan time.Duration, total) // since start; the channel is so large that pace never waits for the server
	workers := make([]worker, len(clients))
	start := time.Now()
	var wg sync.WaitGroup
	for i, c := range clients {
		w := &workers[i]
		w.init()
		wg.Go(func() {
			for at := range due {
				if now := time.Since(start); now > d+load.drain || load.late > 0 && now-at > load.late {
					w.note(outcome{}, time.Since(start)-at) // not sent: an error
					continue
				}
				status, err := c.send(t, seq.Add(1), load.tenants)
				if err != nil {
					w.err = err
					return
				}
				took := time.Since(start) - at
				w.note(c.outcome(status, t), took)
				if load.watch != nil {
					load.watch(at, took)
				}
			}
		})
	}
	pace(ctx, start, load.tick, rate, total, due)
	close(due)
	paced := time.Since(start)
	wg.Wait()
	s, err := gather(workers, max(paced, d))
	return s, errors.Join(err, ctx.Err())
}

// paceTick is the tick of loads whose latency is measured. It is a tenth of the shortest latency of interest.
const paceTick = 100 * time.Microsecond

// pace sends each due time to the channel `due` when the time is reached. It uses the system's timer. The runtime's
// timer rounds short sleeps up to a millisecond, which would count as latency.
func pace(ctx context.Context, start time.Time, tick time.Duration, rate, total int, due chan<- time.Duration) {
	gap := time.Second / time.Duration(rate)
	for sent := 0; sent < total && ctx.Err() == nil; {
		now := time.Since(start)
		for ; sent < total; sent++ {
			at := time.Duration(sent) * gap
			if at > now {
				break
			}
			due <- at
		}
		sleep(tick)
	}
}
