package ledger

import "crypto/sha256"

// Chain is the head of a balance's hash chain: head' = SHA-256(head, entry), beginning with 32 zero bytes. With the
// head, anybody can check whether an entry that the chain covers was changed, removed or inserted.
//
// The auditor has its own implementation (package audit, chain.go). docs/decisions/hash-chain.md has the format.
type Chain struct {
	From int64 // seq of the first entry that it covers; 0: no entry
	Last int64 // seq of the newest entry
	Head [sha256.Size]byte
}

// extend adds an entry. After entries that a version of the service without chains has written, the chain begins anew.
func (c *Chain) extend(e *Entry, buf []byte) []byte {
	if c.From == 0 || c.Last != e.Seq-1 {
		*c = Chain{From: e.Seq}
	}
	buf = appendEntry(append(buf[:0], c.Head[:]...), e)
	c.Head, c.Last = sha256.Sum256(buf), e.Seq
	return buf
}

// Extend adds the next entry of the balance, for callers with a journal from elsewhere. The entry's documents must be
// valid JSON.
func (c *Chain) Extend(e *Entry) { c.extend(e, nil) }

// chainEntries adds the new entries of the batch to the chains of its books.
func (b *Batch) chainEntries() {
	for i := range b.journal {
		e := &b.journal[i]
		b.hashed = b.Books[e.BalanceKey].Chain.extend(e, b.hashed)
	}
}
