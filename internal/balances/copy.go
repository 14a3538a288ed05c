package balances

import (
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// copyFormat is the first field of an encoded copy. A reader treats other formats as missing. The next publication with a
// higher seq replaces them.
const copyFormat = "1"

// Flags of an encoded copy.
const (
	flagRenews uint8 = 1 << iota
	flagInPlan
	flagBeyond
)

func flagsOf(c *ledger.BalanceCopy) (flags uint8) {
	if c.Renews {
		flags |= flagRenews
	}
	if c.InPlan {
		flags |= flagInPlan
	}
	if c.Beyond {
		flags |= flagBeyond
	}
	return flags
}

// encodeCopy encodes the fields of a copy other than its key and seq, as integers separated by blanks: format, flags,
// remaining, limit, allowance, then ResetAt, ValidUntil and AsOf in µs (0: zero time).
func encodeCopy(c *ledger.BalanceCopy) string {
	buf := make([]byte, 0, 96)
	buf = append(buf, copyFormat...)
	for _, n := range [...]int64{
		int64(flagsOf(c)), c.Remaining, c.Limit, c.Allowance, micros(c.ResetAt), micros(c.ValidUntil), micros(c.AsOf),
	} {
		buf = append(buf, ' ')
		buf = strconv.AppendInt(buf, n, 10)
	}
	return string(buf)
}

// decodeCopy decodes a value of the balances script, "<seq> <encoded copy>". ok is false for any other text or format.
func decodeCopy(k ledger.BalanceKey, stored string) (c *ledger.BalanceCopy, ok bool) {
	local, ok := decodeLocal(stored)
	if !ok {
		return nil, false
	}
	return local.unpack(k), true
}

func decodeLocal(stored string) (c localCopy, ok bool) {
	seqText, rest, _ := strings.Cut(stored, " ")
	format, rest, _ := strings.Cut(rest, " ")
	if format != copyFormat {
		return c, false
	}
	seq, err := strconv.ParseInt(seqText, 10, 64)
	if err != nil || seq < 0 {
		return c, false
	}
	var fields [7]int64
	for i := range fields {
		var text string
		var more bool
		text, rest, more = strings.Cut(rest, " ")
		if fields[i], err = strconv.ParseInt(text, 10, 64); err != nil || more != (i < len(fields)-1) {
			return c, false
		}
	}
	return localCopy{
		seq: seq, flags: uint8(fields[0] & 0xff), remaining: fields[1], limit: fields[2], allowance: fields[3],
		resetAt: fields[4], validUntil: fields[5], asOf: fields[6],
	}, true
}

// localCopy is a copy without its key, with the hash of the text that Redis had for it last: an unchanged text is not decoded again. It has
// 72 bytes, the copy and its text have 270.
type localCopy struct {
	seq, remaining, limit, allowance int64
	resetAt, validUntil, asOf        int64  // µs; 0: zero time
	text                             uint64 // 0: none
	flags                            uint8
}

func pack(c *ledger.BalanceCopy) localCopy {
	return localCopy{
		seq: c.Seq, remaining: c.Remaining, limit: c.Limit, allowance: c.Allowance, flags: flagsOf(c),
		resetAt: micros(c.ResetAt), validUntil: micros(c.ValidUntil), asOf: micros(c.AsOf),
	}
}

func (l *localCopy) unpack(k ledger.BalanceKey) *ledger.BalanceCopy {
	return &ledger.BalanceCopy{
		Tenant: k.Tenant, Meter: k.Meter, Subject: k.Subject, Seq: l.seq, Remaining: l.remaining, Limit: l.limit, Allowance: l.allowance,
		Renews: l.flags&flagRenews != 0, InPlan: l.flags&flagInPlan != 0, Beyond: l.flags&flagBeyond != 0,
		ResetAt: fromMicros(l.resetAt), ValidUntil: fromMicros(l.validUntil), AsOf: fromMicros(l.asOf),
	}
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// newer reports whether a replaces b: it has the higher seq, or the same seq and was read later, or b had ended when a was read. A read counts
// entries that nobody has written yet, and later there may be fewer of them, because idle periods have none.
func newer(a, b *ledger.BalanceCopy) bool {
	first, second := pack(a), pack(b)
	return first.newer(&second)
}

func (l *localCopy) newer(than *localCopy) bool {
	ended := than.validUntil != 0 && l.asOf >= than.validUntil
	return l.seq > than.seq || l.seq == than.seq && l.asOf > than.asOf || ended
}
