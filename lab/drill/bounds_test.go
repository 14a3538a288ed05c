package drill

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// In each case instance 0 grants 20 tokens by Redis. Instance 1 may know of them or not. An outage lasts from second 10
// to 15. The test compares the bound of the bucket, after further grants of the case, with the stated one.
func TestLimits_Outage_BoundIsAsStated(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(second float64) time.Time { return start.Add(time.Duration(second * float64(time.Second))) }
	grants := func(by, n int, second float64, local bool) (all []decision) {
		for range n {
			d := decision{by: by, sent: at(second), granted: true, local: local}
			d.ended = d.sent.Add(time.Millisecond)
			all = append(all, d)
		}
		return all
	}
	look := func(by int, second float64) []decision {
		d := grants(by, 1, second, false)
		d[0].granted = false
		return d
	}
	both := look(1, 5) // instance 1 knows what instance 0 was granted
	for name, tc := range map[string]struct {
		do      Action
		kind    string // of the limit; empty: a window
		answers [][]decision
		change  func(lives []*life)
		want    int // the bound
	}{
		"all know all":                {do: PauseRedis, answers: [][]decision{both}, want: 0},
		"one knows nothing":           {do: PauseRedis, want: 20},
		"one does not know the last":  {do: PauseRedis, answers: [][]decision{both, grants(0, 3, 6, false)}, want: 3},
		"on their way when it begins": {PauseRedis, "", [][]decision{both, grants(0, 2, 9.9995, false)}, nil, 2},
		"granted without redis":       {do: PauseRedis, answers: [][]decision{both, grants(0, 10, 11, true)}, want: 0},
		"an instance is killed then": {
			PauseRedis, "",
			[][]decision{both, grants(0, 10, 11, true), grants(1, 4, 11, true)},
			func(lives []*life) { lives[0].ended = at(12) }, 10,
		},
		"an instance is killed later": {
			PauseRedis, "",
			[][]decision{both, grants(0, 10, 11, true)},
			func(lives []*life) { lives[0].ended = at(28) }, 0,
		},
		"an instance starts then": {
			PauseRedis, "",
			[][]decision{both, grants(2, 4, 13, true)},
			func(lives []*life) { lives[2].began = at(12) }, 4,
		},
		"an instance starts then, and admits much": {
			PauseRedis, "",
			[][]decision{both, grants(2, 30, 13, true)},
			func(lives []*life) { lives[2].began = at(12) }, 30,
		},
		"an instance is paused then": {
			PauseRedis, "",
			[][]decision{both, grants(1, 5, 11, true)},
			func(lives []*life) { lives[1].pauses = []span{{at(16), at(17)}} }, 5,
		},
		"cut off alone":      {PauseRedis, "", [][]decision{both, grants(1, 30, 30, true)}, nil, 20},
		"failover":           {FailoverRedis, "", [][]decision{grants(0, 3, 9.5, false), look(1, 9.8)}, nil, 3},
		"the data are lost":  {do: KillRedis, answers: [][]decision{both}, want: 0},
		"refused writes":     {do: RefuseWrites, want: 20},
		"leases, all living": {do: KillRedis, kind: leaseKind, answers: [][]decision{both}, want: 0},
		"leases of a dead one": {
			KillRedis, leaseKind, [][]decision{both}, func(lives []*life) { lives[0].ended = at(7) }, 20,
		},
		"what a dead one counted, and another saw": {
			KillRedis, "", [][]decision{both}, func(lives []*life) { lives[0].ended = at(7) }, 0,
		},
		"what a dead one counted, and nobody saw": {
			KillRedis, "",
			[][]decision{both, grants(0, 4, 6, false)},
			func(lives []*life) { lives[0].ended = at(7) }, 8,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lives := []*life{{began: at(0)}, {began: at(0)}, {began: at(60)}}
			if tc.change != nil {
				tc.change(lives)
			}
			b := bucket{kind: tc.kind, answers: append(grants(0, 20, 1, false), look(0, 12)...)}
			for _, more := range tc.answers {
				b.answers = append(b.answers, more...)
			}
			got, met := b.bound(lives, []outage{{do: tc.do, from: at(10), hit: at(10), to: at(15)}}, 2)
			assert.True(t, got == tc.want && len(met) == 1, "the bound is %d in %v, want %d", got, met, tc.want)
		})
	}
}

// A second outage begins before the instances have charged in Redis what they granted in the first one.
func TestLimits_OutageAfterOutage_EarlierGrantsAreUnknown(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	b := bucket{}
	for i, second := range []int{11, 11, 11, 18} { // the last one is no grant: Redis answers instance 1
		by, first := i/3, i < 3
		d := decision{by: by, sent: at(second), ended: at(second), granted: first, local: first}
		b.answers = append(b.answers, d)
	}
	outages := []outage{{PauseRedis, at(10), at(10), at(15)}, {PauseRedis, at(20), at(20), at(25)}}
	got, met := b.bound([]*life{{began: at(0)}, {began: at(0)}}, outages, 2)
	assert.True(t, got == 0 && len(met) == 1, "the bound is %d in %v", got, met)
	b.answers = append(b.answers, decision{by: 1, sent: at(26), ended: at(26)})
	got, met = b.bound([]*life{{began: at(0)}, {began: at(0)}}, outages, 2)
	assert.True(t, got == 3 && len(met) == 2, "the bound is %d in %v", got, met)
}

func TestLimits_Judge_CountsWhatIsBeyond(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := &bucket{kind: "fixed_window", tenant: "t0", subject: "b0"}
	for range limitTokens + 3 {
		b.answers = append(b.answers, decision{sent: now, ended: now, granted: true})
	}
	l := limits{instances: 2, all: []*bucket{b, {}}, requests: 50}
	got := l.judge([]*life{{began: now}}, nil)
	assert.Equal(t, Excess{Buckets: 2, Over: 3, Bound: 0, Beyond: 3}, got.All)
	assert.Equal(t, map[string]Excess{"none": got.All}, got.By)
	assert.True(t, got.Granted == limitTokens+3 && got.Local == 0, "%+v", got)
	assert.True(t, got.Requests == 50 && len(got.Examples) == 1, "%+v", got)
}
