package citus

import "math/bits"

// hashOf returns PostgreSQL's hash of a text with a bytewise collation (Bob Jenkins's lookup3). Citus chooses the
// shard of a row by this hash.
func hashOf(key string) int32 {
	n := uint32(len(key))
	a := 0x9e3779b9 + n + 3923095
	b, c := a, a
	for len(key) >= 12 {
		a, b, c = a+word(key), b+word(key[4:]), c+word(key[8:])
		a, b, c = mix(a, b, c)
		key = key[12:]
	}
	// Add the last bytes. The lowest byte of c is left out, because it is reserved for the length.
	for i := range len(key) {
		v := uint32(key[i])
		switch {
		case i < 4:
			a += v << (8 * i)
		case i < 8:
			b += v << (8 * (i - 4))
		default:
			c += v << (8 * (i - 7))
		}
	}
	return int32(finish(a, b, c))
}

func word(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func mix(a, b, c uint32) (_, _, _ uint32) {
	a -= c
	a ^= bits.RotateLeft32(c, 4)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 6)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 8)
	b += a
	a -= c
	a ^= bits.RotateLeft32(c, 16)
	c += b
	b -= a
	b ^= bits.RotateLeft32(a, 19)
	a += c
	c -= b
	c ^= bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

func finish(a, b, c uint32) uint32 {
	c ^= b
	c -= bits.RotateLeft32(b, 14)
	a ^= c
	a -= bits.RotateLeft32(c, 11)
	b ^= a
	b -= bits.RotateLeft32(a, 25)
	c ^= b
	c -= bits.RotateLeft32(b, 16)
	a ^= c
	a -= bits.RotateLeft32(c, 4)
	b ^= a
	b -= bits.RotateLeft32(a, 14)
	c ^= b
	c -= bits.RotateLeft32(b, 24)
	return c
}
