package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
)

// chain is the hash chain of a balance. From and Last are the first and the newest entry that it covers.
type chain struct {
	From, Last int64
	Head       [sha256.Size]byte
}

// chainBytes is the length of a stored chain: From and Last, 8 bytes each, big endian, then Head.
const chainBytes = 16 + sha256.Size

// decodeChain decodes a chain column. NULL is a chain that covers no entry.
func decodeChain(stored []byte) (c chain, ok bool) {
	if len(stored) == 0 {
		return c, true
	}
	if len(stored) != chainBytes {
		return c, false
	}
	c.From, c.Last = int64(binary.BigEndian.Uint64(stored)), int64(binary.BigEndian.Uint64(stored[8:]))
	copy(c.Head[:], stored[16:])
	return c, c.From >= 1 && c.Last >= c.From
}

// encode returns the stored form of the chain.
func (c *chain) encode() []byte {
	if c.From == 0 {
		return nil
	}
	out := make([]byte, chainBytes)
	binary.BigEndian.PutUint64(out, uint64(c.From))
	binary.BigEndian.PutUint64(out[8:], uint64(c.Last))
	copy(out[16:], c.Head[:])
	return out
}

// hasher computes heads. It reuses its buffers.
type hasher struct {
	buf       []byte
	documents documents
}

// add extends c by an entry of balance k.
func (h *hasher) add(c *chain, k Key, e *entry) error {
	b := append(h.buf[:0], c.Head[:]...)
	if len(e.actor) == 0 {
		b = append(b, 1) // the version of the format
	} else {
		b = append(b, 2) // the same format with an actor at its end
	}
	b = text(text(text(b, k.Tenant), k.Meter), k.Subject)
	b = text(binary.AppendVarint(b, e.seq), e.operation)
	b = text(binary.AppendVarint(b, e.line), e.kind)
	b = text(text(binary.AppendVarint(b, e.period), e.grant), e.source)
	for _, n := range [...]int64{e.amount, e.remaining, e.item, e.requested} {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendVarint(text(b, e.fingerprint), e.createdAt)
	if e.hasEffective {
		b = binary.AppendVarint(append(b, 1), e.effectiveAt)
	} else {
		b = append(b, 0)
	}
	b = text(b, e.opSubject)
	for _, document := range [...][]byte{e.detail, e.metadata} {
		if len(document) == 0 {
			b = append(b, 0)
			continue
		}
		form, err := h.documents.canonical(document)
		if err != nil {
			return fmt.Errorf("document of entry %d of %v: %w", e.seq, k, err)
		}
		b = text(b, form)
	}
	if len(e.actor) > 0 {
		b = text(b, e.actor)
	}
	h.buf = b
	c.Head, c.Last = sha256.Sum256(b), e.seq
	if c.From == 0 {
		c.From = e.seq
	}
	return nil
}

// text appends the length of t, then its bytes.
func text[T string | []byte](b []byte, t T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(t))), t...)
}

// decimal returns a number as an integer without trailing zeros, and a power of ten.
func decimal(number string) string {
	mantissa, power, scientific := strings.Cut(strings.ToLower(number), "e")
	exponent := new(big.Int)
	if scientific {
		exponent.SetString(strings.TrimPrefix(power, "+"), 10)
	}
	if whole, fraction, found := strings.Cut(mantissa, "."); found {
		mantissa = whole + fraction
		exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	}
	digits, _ := new(big.Int).SetString(mantissa, 10)
	if digits == nil || digits.Sign() == 0 {
		return "0"
	}
	plain := digits.String()
	short := strings.TrimRight(plain, "0")
	exponent.Add(exponent, big.NewInt(int64(len(plain)-len(short))))
	return short + "e" + exponent.String()
}
