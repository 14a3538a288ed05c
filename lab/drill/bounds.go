package drill

import (
	"fmt"
	"slices"
	"time"
)

// returnTime is the time after an outage of Redis in which instances find it again and charge in it what they have
// admitted themselves. It is the time that docs/degradation.md names, 7 s, and one more try after 5 s: on the busy
// machine of a drill, Redis may answer the first one too late.
const returnTime = (7 + 5) * time.Second

// failoverLoss is the time before a failover of Redis of which its replica may lack what was counted. It is the time
// that docs/degradation.md names.
const failoverLoss = time.Second

// Limits says how far limits were exceeded, and how far they may be by docs/degradation.md.
type Limits struct {
	Requests int
	Granted  int
	Local    int               // granted without Redis
	All      Excess            // of all buckets
	By       map[string]Excess // by the outage of Redis in which a bucket was used
	Examples []string          // buckets that exceeded their bound
}

// Excess is what some buckets admitted beyond their limit.
type Excess struct {
	Buckets int
	Over    int // admitted over the limit
	Bound   int // the most that may be admitted over the limit
	Beyond  int // admitted over the limit and over the bound
}

func (e Excess) plus(o Excess) Excess {
	return Excess{e.Buckets + o.Buckets, e.Over + o.Over, e.Bound + o.Bound, e.Beyond + o.Beyond}
}

// judge compares what each bucket admitted with its limit and its bound.
func (l *limits) judge(lives []*life, outages []outage) Limits {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Limits{Requests: l.requests, By: map[string]Excess{}}
	for _, b := range l.all {
		granted := b.granted(func(*decision) bool { return true })
		bound, met := b.bound(lives, outages, l.instances)
		over := max(0, granted-limitTokens)
		e := Excess{1, over, bound, max(0, over-bound)}
		r.Granted += granted
		r.Local += b.granted(func(d *decision) bool { return d.local })
		name := "none"
		switch len(met) {
		case 0:
		case 1:
			name = string(met[0])
		default:
			name = "several"
		}
		r.All, r.By[name] = r.All.plus(e), r.By[name].plus(e)
		if e.Beyond > 0 && len(r.Examples) < examplesMax {
			until := b.answers[len(b.answers)-1].ended.UTC().Format(time.RFC3339Nano)
			example := fmt.Sprintf("%d over %s of %s, %s, bound %d, until %s, in %v",
				over, b.kind, b.tenant, b.subject, bound, until, met)
			r.Examples = append(r.Examples, example)
		}
	}
	return r
}

// granted counts the grants for which the function is true.
func (b *bucket) granted(counts func(*decision) bool) int {
	n := 0
	for i := range b.answers {
		if d := &b.answers[i]; d.granted && counts(d) {
			n++
		}
	}
	return n
}

// bound returns the most that the bucket may admit over its limit, and the outages of Redis in which it was used.
func (b *bucket) bound(lives []*life, outages []outage, instances int) (over int, met []Action) {
	share := (limitTokens + instances - 1) / instances
	for i := range outages {
		o := &outages[i]
		if !slices.ContainsFunc(b.answers, func(d decision) bool { return o.covers(d.ended) }) {
			continue
		}
		met = append(met, o.do)
		over += b.unknown(lives, outages[:i], o) + b.lost(lives, o)
		for p, l := range lives {
			all := b.granted(func(d *decision) bool { return d.by == p && o.covers(d.ended) })
			own := b.granted(func(d *decision) bool { return d.by == p && d.local && o.covers(d.ended) })
			switch {
			case o.covers(l.began): // the instance knows nothing, and Redis does not know yet what others have admitted
				over += all
			case o.covers(l.ended): // the count of the instance is lost
				over += own
			case l.paused(o): // the instance is cut off alone
				over += min(share, own)
			}
		}
	}
	// A slow answer of Redis cuts an instance off alone.
	for p := range lives {
		over += min(share, b.granted(func(d *decision) bool {
			covers := func(o outage) bool { return o.covers(d.ended) }
			return d.by == p && d.local && !slices.ContainsFunc(outages, covers)
		}))
	}
	return over, met
}

// unknown returns the most tokens whose use an instance did not know when the outage began. An instance knows the level
// in the latest answer of Redis.
func (b *bucket) unknown(lives []*life, before []outage, o *outage) int {
	most := 0
	for p, l := range lives {
		if !l.at(o.from) {
			continue
		}
		var latest time.Time // when the request was sent that Redis answered last
		for _, d := range b.answers {
			if d.by == p && !d.local && d.ended.Before(o.from) && d.sent.After(latest) {
				latest = d.sent
			}
		}
		// What others admitted themselves in an outage that is hardly over may not be in Redis.
		recent := func(d *decision) bool {
			covers := func(e outage) bool { return e.covers(d.ended) && e.covers(o.from) }
			return d.local && slices.ContainsFunc(before, covers)
		}
		most = max(most, b.granted(func(d *decision) bool {
			return d.by != p && d.sent.Before(o.hit) && (d.ended.After(latest) || recent(d))
		}))
	}
	return most
}

// lost returns the most that Redis lost with its data and no living instance has seen.
func (b *bucket) lost(lives []*life, o *outage) int {
	switch o.do {
	case FailoverRedis: // what its replica lacked
		return b.granted(func(d *decision) bool {
			return !d.local && d.ended.After(o.from.Add(-failoverLoss)) && d.sent.Before(o.hit)
		})
	case KillRedis:
		return b.granted(func(g *decision) bool {
			seen := slices.ContainsFunc(b.answers, func(d decision) bool {
				// A lease is known to the instance that gave it.
				knows := d.by == g.by || b.kind != leaseKind && !d.local && d.sent.After(g.ended)
				return knows && d.ended.Before(o.to) && lives[d.by].at(o.from) && !o.covers(lives[d.by].ended)
			})
			return g.sent.Before(o.hit) && !seen
		})
	default:
		return 0
	}
}

// covers reports whether t is in the outage or in the time in which instances find Redis again.
func (o *outage) covers(t time.Time) bool { return !t.Before(o.from) && t.Before(o.to.Add(returnTime)) }

// at reports whether the instance existed at t.
func (l *life) at(t time.Time) bool {
	return !l.began.After(t) && (l.ended.IsZero() || l.ended.After(t))
}

// paused reports whether the instance was paused in the outage or in the time in which instances find Redis again.
func (l *life) paused(o *outage) bool {
	return slices.ContainsFunc(l.pauses, func(p span) bool {
		return p.to.After(o.from) && p.from.Before(o.to.Add(returnTime))
	})
}
