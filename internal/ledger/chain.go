package ledger

import "crypto/sha256"

// Chain is the head of a balance's hash chain: head' = SHA-256(head, entry), beginning with 32 zero bytes. With the
// head, anybody can check whether an entry that the chain covers was changed, removed or inserted.
//
// The auditor has its own implementation (package audit, chain.go). docs/decisions/hash-chain.md has the format.
type Chain struct {
	From int64 // seq of the first entry that the chain covers; 0: no entry
	Last int64 // seq of the newest entry
	Head [sha256.Size]byte
}

// extend adds e to the chain. It begins a new chain if the entry before e is not in the chain, because a version of
// the service without chains wrote it. buf is a buffer; extend returns it for the next call.
func (c *Chain) extend(e *Entry, buf []byte) []byte {
	if c.From == 0 || c.Last != e.Seq-1 {
		*c = Chain{From: e.Seq}
	}
	buf = appendEntry(append(buf[:0], c.Head[:]...), e)
	c.Head, c.Last = sha256.Sum256(buf), e.Seq
	return buf
}

// Extend adds the next entry of the balance. It is for callers that have entries from outside a batch. The entry's
// documents must be valid JSON.
func (c *Chain) Extend(e *Entry) { c.extend(e, nil) }

// chainEntries adds the new entries of the batch to the chains of its books.
func (b *Batch) chainEntries() {
	for i := range b.journal {
		e := &b.journal[i]
		b.hashed = b.Books[e.BalanceKey].Chain.extend(e, b.hashed)
	}
}
