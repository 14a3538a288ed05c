package ratelimit

import (
	"maps"
	"math/big"
)

// oracle is a second implementation of the package's promise, written in fractions of tokens instead of units: no integer
// trick of the package is repeated here.
type oracle struct {
	buckets map[string]*oracleBucket
}

type oracleBucket struct {
	debt *big.Rat // tokens
	at   int64    // us
	s    *big.Int // units per token the debt was written in
	full int64    // us; when it was due to be full
}

// oracleCharge is a charge in the oracle's terms.
type oracleCharge struct {
	key      string
	count    int64 // tokens per period
	period   int64 // us
	capacity int64
	cost     int64
	shadow   bool
}

type oracleRow struct {
	code      code
	remaining int64
	retry     int64 // us
	next      int64 // us
	reset     int64 // us
}

func newOracle() *oracle { return &oracle{buckets: make(map[string]*oracleBucket)} }

func (o *oracle) decide(now int64, what op, charges []oracleCharge) (allowed bool, rows []oracleRow) {
	allowed = true
	settled := make([]*oracleBucket, len(charges))
	codes := make([]code, len(charges))
	for i, c := range charges {
		settled[i] = o.settle(c, now)
		switch {
		case what == opRefund:
		case c.cost > c.capacity:
			codes[i] = codeNever
		case new(big.Rat).Add(settled[i].debt, tokens(c.cost)).Cmp(tokens(c.capacity)) > 0:
			codes[i] = codeDenied
		}
		if codes[i] != codePass && !c.shadow {
			allowed = false
		}
	}
	for i, c := range charges {
		b := settled[i]
		switch {
		case what == opRefund && b.debt.Sign() > 0:
			b.debt.Sub(b.debt, tokens(c.cost))
			if b.debt.Sign() < 0 {
				b.debt.SetInt64(0)
			}
			o.write(c, b)
		case what == opConsume && allowed && codes[i] == codePass:
			b.debt.Add(b.debt, tokens(c.cost))
			o.write(c, b)
		}
		row := oracleRow{code: codes[i], remaining: floorRat(new(big.Rat).Sub(tokens(c.capacity), b.debt))}
		row.remaining = max(0, row.remaining)
		row.reset = wait(c, b, now, c.capacity)
		if row.remaining < c.capacity {
			row.next = wait(c, b, now, row.remaining+1)
		}
		if codes[i] == codeDenied {
			row.retry = wait(c, b, now, c.cost)
		}
		rows = append(rows, row)
	}
	return allowed, rows
}

// settle is the bucket as of now. A clock set back by more than 5 s moves the stored bucket.
func (o *oracle) settle(c oracleCharge, now int64) *oracleBucket {
	s := unitsPerToken(c.count, c.period)
	stored := o.buckets[c.key]
	if stored == nil {
		return &oracleBucket{debt: new(big.Rat), at: now, s: s}
	}
	b := &oracleBucket{debt: new(big.Rat).Set(stored.debt), at: stored.at, s: s}
	if stored.s.Cmp(s) != 0 { // a new rate: whole units, rounded up, at most 2^53-1 of them
		inUnits := new(big.Rat).Mul(b.debt, new(big.Rat).SetInt(s))
		whole := min(ceilRat(inUnits), maxExact)
		b.debt.SetFrac(big.NewInt(whole), s)
	}
	switch {
	case b.at <= now:
		refill := big.NewRat(c.count, c.period)
		b.debt.Sub(b.debt, refill.Mul(refill, tokens(now-b.at)))
		if b.debt.Sign() < 0 {
			b.debt.SetInt64(0)
		}
		b.at = now
	case b.at-now > 5_000_000:
		b.at = now
		o.write(c, &oracleBucket{debt: new(big.Rat).Set(b.debt), at: now, s: s})
	}
	return b
}

// forget drops the buckets that were due to be full by now, whatever their rate is now.
func (o *oracle) forget(now int64) {
	maps.DeleteFunc(o.buckets, func(_ string, b *oracleBucket) bool { return b.full <= now })
}

func (o *oracle) write(c oracleCharge, b *oracleBucket) {
	b.full = b.at + wait(c, b, b.at, c.capacity)
	o.buckets[c.key] = b
}

// wait is the whole microseconds until n tokens are there.
func wait(c oracleCharge, b *oracleBucket, now, n int64) int64 {
	missing := new(big.Rat).Add(b.debt, tokens(n))
	missing.Sub(missing, tokens(c.capacity))
	if missing.Sign() <= 0 {
		return 0
	}
	return ceilRat(missing.Mul(missing, big.NewRat(c.period, c.count))) + b.at - now
}

func unitsPerToken(count, period int64) *big.Int {
	g := new(big.Int).GCD(nil, nil, big.NewInt(count), big.NewInt(period))
	return g.Div(big.NewInt(period), g)
}

func tokens(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// floorRat rounds towards minus infinity and saturates: only what is capped by the caller can be that large.
func floorRat(x *big.Rat) int64 {
	return saturate(new(big.Int).Div(x.Num(), x.Denom())) // Euclidean: the denominator is positive
}

func ceilRat(x *big.Rat) int64 {
	n := new(big.Int).Neg(x.Num())
	return saturate(n.Neg(n.Div(n, x.Denom())))
}

func saturate(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return -1 << 63
	default:
		return 1<<63 - 1
	}
}
