package oracle

import "github.com/quotasvc/quotasvc/internal/ratelimit/rule"

// ban has the denials of a bucket, and the end of its last ban.
type ban struct {
	denials []int64 // us
	until   int64   // us
}

// banned returns the time until the bucket's ban ends, in us. If the request is a denied Consume and the bucket is not
// banned, banned first counts the denial.
func (o *Oracle) banned(c Charge, now int64, what rule.Op, code rule.Code) int64 {
	if c.Ban.After == 0 || code > rule.Denied || what != rule.Consume && what != rule.Peek {
		return 0
	}
	b := o.Bans[c.Key]
	if longest := now + c.Ban.For.Microseconds(); b.until > longest {
		b.until = longest
	}
	if b.until <= now && what == rule.Consume && code == rule.Denied {
		recent := []int64{now}
		for _, at := range b.denials {
			if at = min(at, now); now-at < c.Ban.Within.Microseconds() { // min: the clock may go back
				recent = append(recent, at)
			}
		}
		b.denials, b.until = recent, 0
		if int64(len(recent)) >= c.Ban.After {
			b.until, b.denials = now+c.Ban.For.Microseconds(), nil
		}
	}
	o.Bans[c.Key] = b
	return max(0, b.until-now)
}

// BanEnds returns the time at which the ban of a bucket ends, in us, or 0 if the bucket never had a ban.
func (o *Oracle) BanEnds(key string) int64 { return o.Bans[key].until }
