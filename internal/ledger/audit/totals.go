package audit

import (
	"math"
	"math/big"
)

// Totals are a meter's sums over all verified balances: Issued + Refunded + Adjusted = Used + Expired + Remaining + Held. A sum beyond
// 2^63-1 is shown as that; the comparison is exact.
type Totals struct {
	Issued, Used, Refunded, Expired, Adjusted, Remaining, Held int64
	// Partial reports that some balances could not be read: the sums are not those of all.
	Partial bool
}

// totals are Totals without a bound: issued, used, refunded, expired, adjusted, remaining, held.
type totals [7]big.Int

func (t *totals) add(n ...int64) *totals {
	out := new(totals)
	if t != nil {
		for i := range t {
			out[i].Set(&t[i])
		}
	}
	for i, v := range n {
		out[i].Add(&out[i], big.NewInt(v))
	}
	return out
}

func (t *totals) plus(j *journal, b *balance) *totals {
	return t.add(j.issued, j.used, j.refunded, j.expired, j.adjusted, b.remaining(), b.held)
}

// plusCheckpoint adds a balance that has not changed since its checkpoint.
func (t *totals) plusCheckpoint(c *checkpoint) *totals {
	s := c.State.Totals
	return t.add(s[0], s[1], s[2], s[3], s[4], c.Remaining, c.State.Held)
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
