package balances

import (
	"strconv"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// copyFormat is the first field of an encoded copy. A reader treats other formats as missing. The next publication
// with a higher seq replaces such copies.
const copyFormat = "1"

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
