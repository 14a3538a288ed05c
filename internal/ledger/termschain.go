package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"
)

// TermsChain is the hash chain over the terms of a tenant, or over the versions of a plan: head' = SHA-256(head, row),
// beginning with 32 zero bytes, in the order of the instants at which the rows take effect. A row is a JSON document of
// all its columns. Terms that wait are not in the chain before they take effect, because they may be taken back.
//
// The auditor has its own implementation (package audit, agreement.go). docs/decisions/hash-chain.md has the reasons.
type TermsChain struct {
	Rows  int64     // number of rows that the chain covers
	Until time.Time // the chain covers all rows that take effect until then
	Head  [sha256.Size]byte
	Waits [sha256.Size]byte // RowHash of the terms that wait; zero: none wait
}

// termsVersion is the version of the encoding of a row. A new column of the document needs a new version.
const termsVersion = 1

const (
	termsChainBytes = 16 + sha256.Size
	termsWaitBytes  = termsChainBytes + sha256.Size
)

// Add adds a row that takes effect at an instant. The document must be JSON.
func (c *TermsChain) Add(at time.Time, document []byte) {
	c.Head = extended(c.Head, document)
	c.Rows++
	if at.After(c.Until) {
		c.Until = at
	}
}

// RowHash returns the hash of a row outside a chain. The document must be JSON.
func RowHash(document []byte) [sha256.Size]byte { return extended([sha256.Size]byte{}, document) }

func extended(head [sha256.Size]byte, document []byte) [sha256.Size]byte {
	return sha256.Sum256(appendJSON(append(head[:], termsVersion), document))
}

// Encode returns the stored form: Rows and Until in microseconds since 1970, 8 bytes each, big endian, Head, and Waits
// unless it is zero.
func (c *TermsChain) Encode() []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.Rows))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Until.UnixMicro()))
	b = append(b, c.Head[:]...)
	if c.Waits == [sha256.Size]byte{} {
		return b
	}
	return append(b, c.Waits[:]...)
}

// DecodeTermsChain decodes a stored chain. It returns false for other bytes.
func DecodeTermsChain(stored []byte) (c TermsChain, ok bool) {
	if !slices.Contains([]int{termsChainBytes, termsWaitBytes}, len(stored)) {
		return c, false
	}
	c.Rows = int64(binary.BigEndian.Uint64(stored))
	c.Until = time.UnixMicro(int64(binary.BigEndian.Uint64(stored[8:]))).UTC()
	copy(c.Head[:], stored[16:])
	copy(c.Waits[:], stored[min(termsChainBytes, len(stored)):])
	return c, true
}
