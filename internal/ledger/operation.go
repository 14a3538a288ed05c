package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Kind says what an operation does.
type Kind string

// The kinds of client operations.
const (
	KindDebit   Kind = "debit"
	KindGrant   Kind = "grant"
	KindHold    Kind = "hold"
	KindCapture Kind = "capture"
	KindRelease Kind = "release"
	KindExtend  Kind = "extend"
	KindRefund  Kind = "refund"
	KindVoid    Kind = "void"
	KindAdjust  Kind = "adjust"
)

// Position is where a balance stands after an operation.
type Position struct {
	Remaining int64
	// Limit is what could be used in the open period in all: remaining + held + what was used and not refunded.
	Limit   int64
	ResetAt time.Time // the period's end; zero when the period has none
}

// fingerprint identifies a request regardless of who asks when: it hashes what the client sent, length-prefixed, never
// anything derived from state.
type fingerprint [16]byte

type hasher struct{ buf []byte }

func (h *hasher) text(s string) *hasher {
	h.buf = binary.AppendUvarint(h.buf, uint64(len(s)))
	h.buf = append(h.buf, s...)
	return h
}

func (h *hasher) number(n int64) *hasher {
	h.buf = binary.AppendVarint(h.buf, n)
	return h
}

func (h *hasher) instant(t time.Time) *hasher {
	if t.IsZero() {
		return h.number(-1)
	}
	return h.number(t.UnixMicro())
}

func (h *hasher) flag(b bool) *hasher {
	if b {
		return h.number(1)
	}
	return h.number(0)
}

func (h *hasher) items(items []Item) {
	h.number(int64(len(items)))
	for i := range items {
		h.text(items[i].Meter).number(items[i].Amount)
	}
}

func (h *hasher) sum() fingerprint {
	full := sha256.Sum256(h.buf)
	return fingerprint(full[:16])
}
