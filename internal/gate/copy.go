package gate

import (
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// balanceKey names a balance.
type balanceKey struct{ Tenant, Meter, Subject string }

// redisKey is where Redis keeps the balance's copy. The tenant is the hash tag, so a tenant's copies share a slot with its
// buckets.
func (k balanceKey) redisKey() string {
	return "quota:{" + k.Tenant + "}:bal:" + k.Meter + ":" + k.Subject
}

func keyOf(c *ledger.BalanceCopy) balanceKey { return balanceKey{c.Tenant, c.Meter, c.Subject} }

// newer says whether a supersedes b: it counts more entries, or as many and was read later.
func newer(a, b *ledger.BalanceCopy) bool {
	return a.Seq > b.Seq || a.Seq == b.Seq && a.AsOf.After(b.AsOf)
}

// copyFormat heads an encoded copy. A value with another head is no copy to this version of the service: it is read as
// missing, and the next publication with a higher seq overwrites it.
const copyFormat = "1"

// Flags of an encoded copy.
const (
	flagRenews = 1 << iota
	flagInPlan
	flagBeyond
)

// encodeCopy writes what a copy says beside its key and seq: format, flags, remaining, limit, allowance, and period's end,
// end of validity and reading time in us, 0 for a zero time.
func encodeCopy(c *ledger.BalanceCopy) string {
	var flags int64
	if c.Renews {
		flags |= flagRenews
	}
	if c.InPlan {
		flags |= flagInPlan
	}
	if c.Beyond {
		flags |= flagBeyond
	}
	buf := make([]byte, 0, 96)
	buf = append(buf, copyFormat...)
	for _, n := range [...]int64{
		flags, c.Remaining, c.Limit, c.Allowance, micros(c.ResetAt), micros(c.ValidUntil), micros(c.AsOf),
	} {
		buf = append(buf, ' ')
		buf = strconv.AppendInt(buf, n, 10)
	}
	return string(buf)
}

// decodeCopy reads what the balances script stored, "<seq> <encoded copy>". ok = false: it is not a copy of this format.
func decodeCopy(k balanceKey, stored string) (c *ledger.BalanceCopy, ok bool) {
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
	return &ledger.BalanceCopy{
		Tenant: k.Tenant, Meter: k.Meter, Subject: k.Subject, Seq: seq,
		Renews: fields[0]&flagRenews != 0, InPlan: fields[0]&flagInPlan != 0, Beyond: fields[0]&flagBeyond != 0,
		Remaining: fields[1], Limit: fields[2], Allowance: fields[3],
		ResetAt: fromMicros(fields[4]), ValidUntil: fromMicros(fields[5]), AsOf: fromMicros(fields[6]),
	}, true
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
