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
	seqText, rest, _ := strings.Cut(stored, " ")
	format, rest, _ := strings.Cut(rest, " ")
	if format != copyFormat {
		return nil, false
	}
	seq, err := strconv.ParseInt(seqText, 10, 64)
	if err != nil || seq < 0 {
		return nil, false
	}
	var fields [7]int64
	for i := range fields {
		var text string
		var more bool
		text, rest, more = strings.Cut(rest, " ")
		if fields[i], err = strconv.ParseInt(text, 10, 64); err != nil || more != (i < len(fields)-1) {
			return nil, false
		}
	}
	local := localCopy{
		seq: seq, flags: uint8(fields[0] & 0xff), remaining: fields[1], limit: fields[2], allowance: fields[3],
		resetAt: fields[4], validUntil: fields[5], asOf: fields[6],
	}
	return local.unpack(k), true
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
