package oracle

import "slices"

// note keeps how many tokens of a log whoever asked has seen.
func (o *Oracle) note(c Charge, b *Bucket) {
	if (c.model() == slidingLog{}) {
		o.seen[c.Key] = len(b.log)
	}
}

// Lose loses all data, and lets those bring it back who have seen every decision. Bans are lost. Of a log only the number of tokens and
// the newest one's time are known: all count as taken then.
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
