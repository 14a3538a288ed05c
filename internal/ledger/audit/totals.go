package audit

import (
	"math"
	"math/big"
	"slices"
)

// Totals are a meter's sums over all verified balances: Issued + Refunded + Adjusted = Used + Expired + Remaining +
// Held. A sum above 2^63-1 is shown as 2^63-1; the comparison is exact.
type Totals struct {
	Issued, Used, Refunded, Expired, Adjusted, Remaining, Held int64
	// Partial reports that some balances could not be read: the sums do not include them.
	Partial bool
}

// totals are Totals without a bound: issued, used, refunded, expired, adjusted, remaining, held.
type totals [7]big.Int

// overallSums is the number of totals that come from entries: all except remaining and held.
const overallSums = 5

// overall returns the sums over all periods: issued, used, refunded, expired, adjusted. The sums of one period fit in
// 64 bits, the sums of all periods may not.
func (j *journal) overall() []*big.Int {
	out := make([]*big.Int, overallSums)
	for i := range out {
		out[i] = new(big.Int)
		if j.resumed != nil {
			out[i].Set(j.resumed.State.Totals[i])
		}
	}
	add := func(p *periodSums, sign int64) {
		for i, n := range [overallSums]int64{p.granted, p.used, p.refunded, p.expired, p.adjusted + p.amended} {
			out[i].Add(out[i], big.NewInt(sign*n))
		}
	}
	for _, p := range j.periods {
		add(p, 1)
	}
	if j.resumed != nil { // the checkpoint's open period is in j.periods, and also in the checkpoint's totals
		add(periodOf(j.resumed.State.Period), -1)
	}
	return out
}

func (t *totals) add(overall []*big.Int, remaining, held int64) *totals {
	out := new(totals)
	if t != nil {
		for i := range t {
			out[i].Set(&t[i])
		}
	}
	for i, n := range append(slices.Clone(overall), big.NewInt(remaining), big.NewInt(held)) {
		out[i].Add(&out[i], n)
	}
	return out
}

func (t *totals) plus(j *journal, b *balance) *totals {
	return t.add(j.overall(), b.remaining(), b.held)
}

// plusCheckpoint returns the totals plus the sums of a balance that has not changed since its checkpoint.
func (t *totals) plusCheckpoint(c *checkpoint) *totals {
	return t.add(c.State.Totals, c.Remaining, c.State.Held)
}

// sides returns both sides of the equation of Totals.
func (t *totals) sides() (in, out *big.Int) {
	in = new(big.Int).Add(new(big.Int).Add(&t[0], &t[2]), &t[4])
	out = new(big.Int).Add(new(big.Int).Add(&t[1], &t[3]), new(big.Int).Add(&t[5], &t[6]))
	return in, out
}

func (t *totals) shown() Totals {
	n := make([]int64, len(t))
	for i := range t {
		switch {
		case t[i].IsInt64():
			n[i] = t[i].Int64()
		case t[i].Sign() > 0:
			n[i] = math.MaxInt64
		default:
			n[i] = math.MinInt64
		}
	}
	return Totals{Issued: n[0], Used: n[1], Refunded: n[2], Expired: n[3], Adjusted: n[4], Remaining: n[5], Held: n[6]}
}
