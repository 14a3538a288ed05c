package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// at returns the time since the start of the load, for seconds since the end of the warm-up.
func at(seconds float64) time.Duration {
	return outageWarmUp + time.Duration(seconds*float64(time.Second))
}

// outageOf returns the result of a run with 1,000 requests/s. Redis was killed after 1 s and answered again after 2
// s. From 1 s to 3 s, the instances decide without Redis, in 20 ms per request.
func outageOf(change func(*shot)) *OutageResult {
	o := &outage{
		cfg:    &OutageConfig{Instances: make([]Instance, 2), Rate: 1000, Before: time.Second, Away: time.Second, After: 2 * time.Second},
		killed: at(1), back: at(2),
		samples: []scriptCalls{{at(0), 500, 5}, {at(0.99), 1400, 7}, {at(2.05), 10, 1}, {at(2.99), 20, 1}, {at(3.98), 1000, 4}},
	}
	var shots []shot
	for i := range 5000 { // the first second is the warm-up
		s := shot{due: time.Duration(i) * time.Millisecond, took: time.Millisecond, status: 200, consume: i%oneConsumeIn == 0}
		s.local = s.due >= o.killed && s.due < at(3)
		if s.local {
			s.took = 20 * time.Millisecond
		}
		if s.consume && i%(2*oneConsumeIn) == 0 {
			s.status = 429
		}
		change(&s)
		shots = append(shots, s)
	}
	return o.summarize(shots, handled{0.001: 0, 0.032: 99, 0.064: 100})
}

func TestOutage_Phases_CutAtKillAndRecovery(t *testing.T) {
	t.Parallel()
	r := outageOf(func(*shot) {})
	assert.True(t, r.Killed == time.Second && r.Back == 2*time.Second && r.Recovered == 2999*time.Millisecond,
		"killed %s, back %s, recovered %s", r.Killed, r.Back, r.Recovered)
	assert.True(t, r.Before.Requests == 1000 && r.Outage.Requests == 2000 && r.Outage.Local == 2000 && r.After.Requests == 1000 &&
		r.After.Local == 0, "%+v %+v %+v", r.Before, r.Outage, r.After)
	assert.True(t, r.Outage.Check.P99/100 == 200 && r.Outage.Slowest == 20*time.Millisecond &&
		r.Before.Slowest == time.Millisecond, "%+v %+v", r.Before, r.Outage)
	assert.True(t, r.CallsBefore == 900 && r.CallsAfter >= 980 && r.CallsAfter <= 1000,
		"%d and %d calls", r.CallsBefore, r.CallsAfter)
	assert.True(t, r.ConnectionsBefore == 7 && r.ConnectionsAfter == 4,
		"%d and %d connections", r.ConnectionsBefore, r.ConnectionsAfter)
	assert.True(t, r.HandledP99 == 32*time.Millisecond && r.Handled == 64*time.Millisecond,
		"handled within %s and %s", r.HandledP99, r.Handled)
	assert.True(t, len(r.Timeline) == 40 && r.Timeline[15].AdmittedLocally == 10 &&
		r.Timeline[35].AdmittedByRedis == 10,
		"%d moments: %+v", len(r.Timeline), r.Timeline)
	assert.True(t, r.Met(), r.Targets)
}

func TestOutage_AdmissionBound_ThreeBursts(t *testing.T) {
	t.Parallel()
	// There are 10 buckets with 10 tokens/s and a burst of 5. The bound has three parts: 3 x 50 for the bursts, 100/s
	// during 1 s, 2 s and 1 s, and one token per bucket and instance.
	r := outageOf(func(*shot) {})
	assert.True(t, r.Bound >= 150+400-5 && r.Bound <= 150+400+20+5 && r.Admitted == 400 && r.AdmittedInOutage == 200,
		"%d admitted, %d in the outage; at most %.1f", r.Admitted, r.AdmittedInOutage, r.Bound)
	r = outageOf(func(s *shot) { s.status = 200 })
	assert.False(t, r.Met(), "%d admitted, at most %.1f, and nothing is missed: %+v", r.Admitted, r.Bound, r.Targets)
}

func TestOutage_EachViolation_MissesATarget(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*shot){
		"slowest": func(s *shot) {
			if s.due == at(1.5) {
				s.took = 151 * time.Millisecond
			}
		},
		"p99":   func(s *shot) { s.took += 40 * time.Millisecond },
		"other": func(s *shot) { s.status = 503 },
		"none":  func(s *shot) { s.status = 0 },
	} {
		r := outageOf(change)
		assert.False(t, r.Met(), "%s: %+v", name, r.Targets)
	}
}

func TestOutage_Result_ReportAndChartWritten(t *testing.T) {
	t.Parallel()
	r, dir := outageOf(func(*shot) {}), t.TempDir()
	require.NoError(t, r.write(dir))
	for _, name := range []string{"outage.json", "outage.svg"} {
		info, err := os.Stat(filepath.Join(dir, name))
		assert.True(t, err == nil && info.Size() >= 1000, "%s: %v, %v", name, info, err)
	}
	var out strings.Builder
	err := r.Print(&report.Printer{Out: &out})
	assert.True(t, err == nil && strings.Contains(out.String(), "admitted 400"), "%v:\n%s", err, out.String())
}
