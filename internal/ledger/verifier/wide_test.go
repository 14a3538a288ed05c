package verifier

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// The largest balance is used and refunded repeatedly, in several periods. The sums of each period are below their
// bound. The used units of all periods together exceed 64 bits, and the refunded units are a little less. verify
// finds no difference, whether it reads all entries or begins at a checkpoint.
func TestVerify_SumsOverPeriodsBeyond64Bits_Agree(t *testing.T) {
	t.Parallel()
	b := newBundle(t).plan("hourly", 0, "hour", "")
	b.signUp("acme", "hourly")
	mustDo(b, topupOf("acme", "paid", "api_calls", ledger.MaxAmount))
	const debits, perPeriod = 1025, 400
	for i := range debits {
		if i%perPeriod == perPeriod-1 {
			b.advance(time.Hour)
		}
		key := fmt.Sprint("d", i)
		mustDo(b, debitOf("acme", key, ledger.MaxAmount))
		if i < debits-1 {
			mustDo(b, &ledger.Refund{Tenant: "acme", Key: "r" + key, OperationID: key})
		}
	}
	b.wholeUpTo = 0
	for _, pass := range []struct {
		name string
		full bool
	}{{"of all entries", true}, {"of an unchanged balance", false}, {"after a checkpoint", false}, {"of all entries again", true}} {
		if pass.name == "after a checkpoint" {
			mustDo(b, &ledger.Refund{Tenant: "acme", Key: "last", OperationID: fmt.Sprint("d", debits-1)})
			mustDo(b, debitOf("acme", "more", ledger.MaxAmount))
		}
		report := b.verified(Options{Full: pass.full})
		for _, d := range report.Differences {
			t.Errorf("a pass %s: %s", pass.name, d)
		}
		assert.EqualValues(t, math.MaxInt64, report.Totals["api_calls"].Used, "used, by a pass %s", pass.name)
	}
}

// verify reports damaged numbers, even if their sums exceed 64 bits.
func TestVerify_DamagedNumbersBeyond64Bits_AreReported(t *testing.T) {
	t.Parallel()
	for table, fact := range map[string]string{"balances SET seq": "newest entry", "hold_lines SET amount": "held of grant"} {
		b := newBundle(t).simple("acme", 10)
		mustDo(b, holdOf("acme", "k1", "h1", 1))
		mustDo(b, holdOf("acme", "k2", "h2", 1))
		mustDo(b, topupOf("acme", "g1", "credits", 10))
		b.exec("UPDATE "+table+" = $1", int64(math.MaxInt64))
		report := b.report()
		named := func(d audit.Difference) bool { return strings.HasPrefix(d.What, fact) }
		assert.True(t, slices.ContainsFunc(report.Differences, named), "%s: %v", table, report.Differences)
	}
}
