package oracle

import "slices"

// note stores the number of tokens of a log that callers have seen.
func (o *Oracle) note(c Charge, b *Bucket) {
	if (c.model() == slidingLog{}) {
		o.seen[c.Key] = len(b.log)
	}
}

// Lose loses all data and restores what processes that have seen every decision would restore. Bans are lost. Of a
// log only the number of tokens and the time of the newest one are known: all tokens count as taken then.
func (o *Oracle) Lose() {
	clear(o.Bans)
	for key, b := range o.Buckets {
		if len(b.log) == 0 {
			continue
		}
		newest := slices.Max(b.log)
		b.log = slices.Repeat([]int64{newest}, o.seen[key])
		if len(b.log) == 0 {
			delete(o.Buckets, key)
		}
	}
}
