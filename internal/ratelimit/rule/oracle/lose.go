package oracle

import "slices"

// note stores the number of tokens in a sliding log after a decision. Callers know this number.
func (o *Oracle) note(c Charge, b *Bucket) {
	if (c.model() == slidingLog{}) {
		o.seen[c.Key] = len(b.log)
	}
}

// Lose loses all data. It then restores the levels, like processes that have seen every decision. Bans are lost. For a
// sliding log, processes know only the number of tokens and the time of the newest token. So all tokens count as taken
// at this time.
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
