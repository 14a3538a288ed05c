package rule

import (
	"math/bits"
	"time"
)

// mulCap returns a*b for non-negative a and b, but at most 2^61, which is far above all exact values.
func mulCap(a, b int64) int64 {
	const most = 1 << 61 // the sum of two results does not overflow
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > most {
		return most
	}
	return int64(lo)
}

// convert returns used * to / from, rounded up, and at most 2^53-1. It converts a level if the number of units per
// token changes. It also converts the level of a bucket to the level of a share of it. Then the arguments `from` and
// `to` are the capacities, in units.
func convert(used, from, to int64) int64 {
	whole, rest := used/from, used%from
	hi, lo := bits.Mul64(uint64(whole), uint64(to))
	part := mulDivCeil(rest, to, from)
	if hi != 0 || lo > uint64(maxExact-part) {
		return maxExact
	}
	return int64(lo) + part
}

// mulDivCeil returns ceil(a*b/c) for 0 <= a < c and b >= 1. The product may exceed 64 bits.
func mulDivCeil(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, rest := bits.Div64(hi, lo, uint64(c))
	if rest > 0 {
		q++
	}
	return int64(q)
}

// partOf returns a*b/c rounded down, for 0 <= b <= c. The product may exceed 64 bits.
func partOf(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// floorDiv returns a/b rounded down, for positive b.
func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }

// CeilDiv returns a/b rounded up, for positive b.
func CeilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// floorMod returns a mod b, which is never negative.
func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// Micros returns the duration of us microseconds.
func Micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
