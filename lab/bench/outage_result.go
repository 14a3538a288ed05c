package bench

import (
	"fmt"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// OutageResult is the effect of an outage of Redis on callers. The measurement starts at the end of the warm-up.
type OutageResult struct {
	Machine   *report.Machine `json:"machine,omitempty"`
	Rate      int             `json:"requests_per_second"`
	Instances int             `json:"instances"`

	Killed    time.Duration `json:"killed_ns"`    // time since the start at which Redis was killed
	Back      time.Duration `json:"back_ns"`      // time since the start at which Redis answered again
	Recovered time.Duration `json:"recovered_ns"` // due time of the last request decided without Redis

	Before Phase `json:"before"`
	Outage Phase `json:"outage"` // from the kill until Redis decides all requests again
	After  Phase `json:"after"`

	// Refused counts the answers that an outage must not cause, by status: all answers except 200 and 429. 0: no
	// answer.
	Refused map[int]int64 `json:"refused"`

	Admitted int64   `json:"admitted"` // consumes that the limit outageRule admitted in the whole run
	Bound    float64 `json:"admitted_at_most"`
	// AdmittedInOutage is compared with FairInOutage, because a limiter that denies all requests would keep any upper
	// bound.
	AdmittedInOutage int64   `json:"admitted_in_outage"`
	FairInOutage     float64 `json:"admitted_in_outage_by_the_rule"`

	// CallsBefore and CallsAfter are the script calls in the busiest second before the kill and after the return of
	// Redis. They show whether many calls arrive at the same time after the return.
	CallsBefore       int64 `json:"script_calls_per_second_before"`
	CallsAfter        int64 `json:"script_calls_per_second_after"`
	ConnectionsBefore int64 `json:"connections_before"`
	ConnectionsAfter  int64 `json:"connections_after"` // connections of the instances since the return of Redis

	// HandledP99 and Handled are upper bounds of the p99 and of the maximum of the handling times, from the
	// instances' histograms. They exclude the client's delays.
	HandledP99 time.Duration `json:"handled_p99_ns"`
	Handled    time.Duration `json:"handled_max_ns"`
	Stall      time.Duration `json:"stall_ns"` // longest delay of the load generator's wake-up

	Targets  []report.Target `json:"targets"`
	Timeline []Moment        `json:"timeline"`
}

// Phase is the result of one phase of the run.
type Phase struct {
	Requests int64          `json:"requests"`
	Local    int64          `json:"without_redis"` // requests that were decided without Redis
	Check    report.Latency `json:"check_micros"`
	Consume  report.Latency `json:"consume_micros"`
	Slowest  time.Duration  `json:"slowest_ns"`
}

// Moment is the result of one slice of the run.
type Moment struct {
	At              time.Duration `json:"at_ns"`
	CheckP99        time.Duration `json:"check_p99_ns"`
	Slowest         time.Duration `json:"slowest_ns"`
	AdmittedByRedis int64         `json:"admitted_by_redis"`
	AdmittedLocally int64         `json:"admitted_locally"`
	Calls           int64         `json:"script_calls"`
}

// summarize returns the result without the warm-up.
func (o *outage) summarize(shots []shot, h handled) *OutageResult {
	slices.SortFunc(shots, func(a, b shot) int { return int(a.due - b.due) })
	shots = shots[max(0, slices.IndexFunc(shots, func(s shot) bool { return s.due >= outageWarmUp })):]
	r := &OutageResult{
		Rate: o.cfg.Rate, Instances: len(o.cfg.Instances), Killed: o.killed, Back: o.back, Recovered: o.killed,
		Refused: map[int]int64{}, HandledP99: h.within(0.99), Handled: h.within(1), Stall: o.stall,
	}
	for _, s := range shots {
		if s.local {
			r.Recovered = max(r.Recovered, s.due)
		}
		if s.status != 200 && s.status != 429 {
			r.Refused[s.status]++
		}
	}
	kill, _ := slices.BinarySearchFunc(shots, r.Killed, byDue)
	recovery, _ := slices.BinarySearchFunc(shots, r.Recovered+1, byDue)
	recovery = max(recovery, kill)
	r.Before, r.Outage, r.After = phaseOf(shots[:kill]), phaseOf(shots[kill:recovery]), phaseOf(shots[recovery:])
	r.admissions(o, shots, shots[kill:recovery])
	r.timeline(o, shots)
	r.redis(o)
	r.judge()
	for _, at := range []*time.Duration{&r.Killed, &r.Back, &r.Recovered} {
		*at -= outageWarmUp
	}
	return r
}

func byDue(s shot, at time.Duration) int { return int(s.due - at) }

func phaseOf(shots []shot) (p Phase) {
	check, consume := newHistogram(), newHistogram()
	for _, s := range shots {
		of := check
		if s.consume {
			of = consume
		}
		_ = of.RecordValue(min(max(s.took.Microseconds(), 1), latencyMaxMicros)) // within the histogram's bounds
		p.Slowest = max(p.Slowest, s.took)
		p.Requests++
		if s.local {
			p.Local++
		}
	}
	p.Check, p.Consume = percentilesOf(check), percentilesOf(consume)
	return p
}

// admissions computes the number of admissions and its upper bound. Each tenant has three buckets. The first is in
// Redis until the kill. The second is the sum of the instances' shares, where each share is at least one token. The
// third is the new bucket in Redis, which is full at the start. A bucket admits at most burst + rate x time. The time
// begins when its first admission was due, and ends with the answer of its last admission.
func (r *OutageResult) admissions(o *outage, shots, inOutage []shot) {
	var first, last [3]time.Duration
	var counts [3]int64
	for _, s := range shots {
		if !s.admitted() {
			continue
		}
		bucket := 0
		switch {
		case s.local:
			bucket = 1
		case s.due >= o.back:
			bucket = 2
		}
		if counts[bucket] == 0 {
			first[bucket] = s.due
		}
		counts[bucket]++
		last[bucket] = max(last[bucket], s.due+s.took)
	}
	for i, n := range counts {
		r.Admitted += n
		if n > 0 {
			r.Bound += outageBuckets * (float64(o.cfg.burst()) + float64(o.cfg.perSecond())*(last[i]-first[i]).Seconds())
		}
	}
	r.Bound += outageBuckets * float64(len(o.cfg.Instances))
	for _, s := range inOutage {
		if s.admitted() {
			r.AdmittedInOutage++
		}
	}
	r.FairInOutage = outageBuckets * float64(o.cfg.perSecond()) * (r.Recovered - r.Killed).Seconds()
}

// timeline divides the run into slices and stores the result of each slice.
func (r *OutageResult) timeline(o *outage, shots []shot) {
	for from := outageWarmUp; len(shots) > 0; from += outageSlice {
		end, _ := slices.BinarySearchFunc(shots, from+outageSlice, byDue)
		m := Moment{At: from - outageWarmUp}
		var checks []time.Duration
		for _, s := range shots[:end] {
			m.Slowest = max(m.Slowest, s.took)
			switch {
			case !s.consume:
				checks = append(checks, s.took)
			case s.admitted() && s.local:
				m.AdmittedLocally++
			case s.admitted():
				m.AdmittedByRedis++
			}
		}
		if slices.Sort(checks); len(checks) > 0 {
			m.CheckP99 = checks[min(len(checks)*99/100, len(checks)-1)]
		}
		m.Calls = o.callsIn(from, from+outageSlice)
		r.Timeline = append(r.Timeline, m)
		shots = shots[end:]
	}
}

// callsIn returns the number of script calls between two samples: the last one before the time `from`, and the last
// one before the time `to`.
func (o *outage) callsIn(from, to time.Duration) int64 {
	calls := func(at time.Duration) (n int64) {
		for _, s := range o.samples {
			// A new server counts from zero.
			if s.at <= at && (s.at >= o.back) == (at >= o.back) {
				n = s.calls
			}
		}
		return n
	}
	return max(0, calls(to)-calls(from))
}

// redis finds the busiest second before the kill and after the return of Redis, and the numbers of connections.
func (r *OutageResult) redis(o *outage) {
	for from := outageWarmUp; from < outageWarmUp+o.cfg.Before+o.cfg.Away+o.cfg.After; from += outageSlice {
		to := from + time.Second
		switch n := o.callsIn(from, to); {
		case to <= o.killed:
			r.CallsBefore = max(r.CallsBefore, n)
		case from >= o.back:
			r.CallsAfter = max(r.CallsAfter, n)
		}
	}
	for _, s := range o.samples {
		if s.at < o.killed {
			r.ConnectionsBefore = s.connections
		} else if s.at >= o.back {
			r.ConnectionsAfter = s.connections
		}
	}
}

// Print writes the result as tables.
func (r *OutageResult) Print(p *report.Printer) error {
	if r.Machine != nil {
		p.Machine(r.Machine)
	}
	out := p.Out
	fmt.Fprintf(out, "%d requests/s over %d instances; one in %d is a consume, and the rule denies half of them\n", r.Rate, r.Instances, oneConsumeIn)
	fmt.Fprintf(out, "Redis was killed after %s, answered again after %s, and decided everything again after %s\n\n", seconds(r.Killed), seconds(r.Back),
		seconds(r.Recovered))
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\trequests\twithout Redis\tcheck p50\tp99\tp99.9\tslowest\tconsume p50\tp99\tp99.9\tslowest\t\n")
	for _, phase := range []struct {
		name string
		of   *Phase
	}{{"before", &r.Before}, {"outage", &r.Outage}, {"after", &r.After}} {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", phase.name, phase.of.Requests, phase.of.Local,
			report.Micros(phase.of.Check.P50), report.Micros(phase.of.Check.P99), report.Micros(phase.of.Check.P999), report.Micros(phase.of.Check.Max),
			report.Micros(phase.of.Consume.P50), report.Micros(phase.of.Consume.P99), report.Micros(phase.of.Consume.P999), report.Micros(phase.of.Consume.Max))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	fmt.Fprintf(out, "\nadmitted %d of at most %.0f; during the outage %d, where the rule admits %.0f\n", r.Admitted, r.Bound, r.AdmittedInOutage, r.FairInOutage)
	fmt.Fprintf(out, "script calls in the busiest second: %d before, %d after; connections made: %d before, %d after\n", r.CallsBefore, r.CallsAfter,
		r.ConnectionsBefore, r.ConnectionsAfter)
	fmt.Fprintf(out, "by the services' histograms 99%% of the requests took at most %s, and all at most %s; the load generator woke up to %s late\n",
		r.HandledP99, r.Handled, r.Stall.Round(time.Millisecond))
	if len(r.Refused) > 0 {
		fmt.Fprintf(out, "REFUSED: %v\n", r.Refused)
	}
	return p.Targets(r.Targets)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Met reports whether all targets are met.
func (r *OutageResult) Met() bool { return report.AllMet(r.Targets) }

// These are the targets of an outage.
const (
	outageSlowestMax  = 150.0 // ms, of any request
	outageCheckP99Max = 50.0  // ms, while Redis is down
	outageCallsMax    = 1.2   // script calls per request in the busiest second after the outage: 1, or 2 for a consume
)

func (r *OutageResult) judge() {
	slowest := max(r.Before.Slowest, r.Outage.Slowest, r.After.Slowest)
	var refused int64
	for _, n := range r.Refused {
		refused += n
	}
	r.Targets = []report.Target{
		report.AtMost("slowest request, from when it was due", "ms", outageSlowestMax, float64(slowest)/float64(time.Millisecond)),
		report.AtMost("p99 of check during the outage", "ms", outageCheckP99Max, float64(r.Outage.Check.P99)/1000),
		report.AtMost("answers other than 200 and 429", "", 0, float64(refused)),
		report.AtMost("consumes admitted", "", r.Bound, float64(r.Admitted)),
		report.AtMost("script calls per request in the busiest second after", "x", outageCallsMax, float64(r.CallsAfter)/float64(r.Rate)),
	}
}

// write writes outage.json and outage.svg into dir.
func (r *OutageResult) write(dir string) error {
	if err := report.WriteJSON(filepath.Join(dir, "outage.json"), r); err != nil {
		return err
	}
	return r.chart(filepath.Join(dir, "outage.svg"))
}
