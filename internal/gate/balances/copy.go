package balances

import (
	"strconv"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// copyFormat is the first field of an encoded copy. If the format of a stored copy differs, the reader treats the
// copy as missing. The next publication with a higher seq replaces the copy.
const copyFormat = "1"

// encodeCopy encodes a copy without its key and seq. The text has integers separated by blanks: format, flags,
// remaining, limit, allowance, ResetAt, ValidUntil and AsOf. The instants are in µs; 0 means the zero time.
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

// decodeCopy decodes a value that the balances script stores: "<seq> <encoded copy>". ok is false for any other text
// or format.
func decodeCopy(k ledger.BalanceKey, stored string) (c *ledger.BalanceCopy, ok bool) {
	local, ok := decodeLocal(stored)
	if !ok {
		return nil, false
	}
	return local.unpack(k), true
}
