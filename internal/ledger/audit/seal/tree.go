package seal

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Hash is a hash of a Merkle tree: SHA-256 as in RFC 6962. Its JSON form is base64.
type Hash = tlog.Hash

// Heads computes the root of a day's heads. The heads must be added in the order of tenant, meter and subject, by
// bytes. Heads keeps one hash per level.
type Heads struct {
	N      int64
	levels []Hash // roots of full subtrees, the largest first: one for each set bit of N
	buf    []byte
}

// Add adds the head of a balance: its hash chain as it is stored.
func (h *Heads) Add(tenant, meter, subject string, chain []byte) {
	b := h.buf[:0]
	for _, part := range [...]string{tenant, meter, subject} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	h.buf = append(b, chain...)
	node := tlog.RecordHash(h.buf)
	for n := h.N; n&1 == 1; n >>= 1 {
		last := len(h.levels) - 1
		node = tlog.NodeHash(h.levels[last], node)
		h.levels = h.levels[:last]
	}
	h.levels = append(h.levels, node)
	h.N++
}

// Root returns the root of the added heads. Without heads, the root is the hash of zero bytes.
func (h *Heads) Root() Hash {
	if h.N == 0 {
		return sha256.Sum256(nil)
	}
	last := len(h.levels) - 1
	root := h.levels[last]
	for i := last - 1; i >= 0; i-- {
		root = tlog.NodeHash(h.levels[i], root)
	}
	return root
}

// Log is the Merkle tree of the records.
type Log struct {
	size   int64
	hashes []Hash // numbered as tlog requires
}

// ReadHashes implements tlog.HashReader.
func (l *Log) ReadHashes(indexes []int64) ([]Hash, error) {
	out := make([]Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index >= int64(len(l.hashes)) {
			return nil, fmt.Errorf("the log has no hash %d", index)
		}
		out[i] = l.hashes[index]
	}
	return out, nil
}

// Append appends a record.
func (l *Log) Append(r *Record) error {
	hashes, err := tlog.StoredHashesForRecordHash(l.size, r.hash(), l)
	if err != nil {
		return fmt.Errorf("append seal of %s to the log: %w", r.Day, err)
	}
	l.hashes = append(l.hashes, hashes...)
	l.size++
	return nil
}

// Size returns the number of records.
func (l *Log) Size() int64 { return l.size }

// RootAt returns the root of the first size records.
func (l *Log) RootAt(size int64) (Hash, error) { return tlog.TreeHash(size, l) }
