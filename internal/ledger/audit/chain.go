package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
)

// chain is the hash chain of a balance: From and Last are the first and the newest entry that it covers.
type chain struct {
	From, Last int64
	Head       [sha256.Size]byte
}

// chainBytes is the length of a stored chain: From and Last, 8 bytes each, big endian, then Head.
const chainBytes = 16 + sha256.Size

// decodeChain decodes a column chain. NULL is a chain that covers nothing.
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

// encode returns the chain as it is stored.
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

// hasher computes heads. It keeps its buffers.
type hasher struct {
	buf, document []byte
}

// add extends c by an entry of balance k.
func (h *hasher) add(c *chain, k Key, e *entry) error {
	b := append(h.buf[:0], c.Head[:]...)
	if len(e.actor) == 0 {
		b = append(b, 1) // the version of the format
	} else {
		b = append(b, 2) // the same with an actor, which ends it
	}
	b = text(text(text(b, []byte(k.Tenant)), []byte(k.Meter)), []byte(k.Subject))
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
		h.document = h.document[:0]
		if len(document) > 0 {
			var err error
			if h.document, err = canonicalJSON(h.document, document); err != nil {
				return fmt.Errorf("document of entry %d of %v: %w", e.seq, k, err)
			}
		}
		b = text(b, h.document)
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

// text appends bytes after their length.
func text(b, t []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(t))), t...) }

// canonicalJSON appends a form of a JSON document that depends on its value only. It reads token by token.
func canonicalJSON(b, document []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	b, err := canonicalValue(b, d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return b, nil
}

func canonicalValue(b []byte, d *json.Decoder) ([]byte, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return canonicalObject(b, d)
		}
		return canonicalArray(b, d)
	case string:
		return text(append(b, 's'), []byte(t)), nil
	case json.Number:
		return text(append(b, 'd'), []byte(decimal(t.String()))), nil
	case bool:
		if t {
			return append(b, 't'), nil
		}
		return append(b, 'f'), nil
	default: // null
		return append(b, 'n'), nil
	}
}

func canonicalArray(b []byte, d *json.Decoder) ([]byte, error) {
	var elements []byte
	n := uint64(0)
	for ; d.More(); n++ {
		var err error
		if elements, err = canonicalValue(elements, d); err != nil {
			return nil, err
		}
	}
	_, err := d.Token() // ]
	return append(binary.AppendUvarint(append(b, 'a'), n), elements...), err
}

func canonicalObject(b []byte, d *json.Decoder) ([]byte, error) {
	type member struct {
		name  string
		value []byte
	}
	var members []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		value, err := canonicalValue(nil, d)
		if err != nil {
			return nil, err
		}
		members = slices.DeleteFunc(members, func(m member) bool { return m.name == name.(string) }) // the last of equal ones counts
		members = append(members, member{name.(string), value})
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	b = binary.AppendUvarint(append(b, 'o'), uint64(len(members)))
	for _, m := range members {
		b = append(text(b, []byte(m.name)), m.value...)
	}
	_, err := d.Token() // }
	return b, err
}

// decimal returns a number as whole digits, none of them a zero at the end, and a power of ten.
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
