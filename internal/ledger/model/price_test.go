package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// till is a tenant without an allowance of tokens. Its credits pay for tokens at a price.
type till struct {
	t      *rapid.T
	memory *Memory
	now    time.Time
	price  price.Ratio
	serial int
	credit int64 // the amount at the start
}

// openTill returns a till with a random price and a random amount of credits. Both may be small or large.
func openTill(t *rapid.T) *till {
	amount := rapid.OneOf(rapid.Int64Range(1, 12), rapid.Int64Range(1, 5000), rapid.Int64Range(ledger.MaxAmount-9, ledger.MaxAmount))
	s := &till{t: t, memory: newMemory(), now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	s.price = price.Ratio{Units: amount.Draw(t, "units"), Per: amount.Draw(t, "per")}
	once := ledger.Allowance{Every: period.Once, Anchor: period.Calendar}
	tokens := once
	tokens.OverflowMeter, tokens.OverflowPrice = "credits", s.price
	s.memory.Plans["ai"] = []ledger.PlanVersion{{Version: 1, CreatedAt: s.now, Allowances: map[string]ledger.Allowance{"tokens": tokens, "credits": once}}}
	s.memory.History = []ledger.TenantTerms{{Since: s.now, Plan: "ai", AnchorAt: s.now, Zone: time.UTC}}
	for range rapid.IntRange(1, 3).Draw(t, "grants") {
		n := amount.Draw(t, "credits")
		if s.do(&ledger.Grant{Tenant: Tenant, Key: s.key(), Meter: "credits", Amount: n, Source: ledger.SourceTopup}) == nil {
			s.credit += n
		}
	}
	return s
}

func (s *till) key() string {
	s.serial++
	return fmt.Sprint("k", s.serial)
}

// do runs an operation and returns its error.
func (s *till) do(op ledger.Operation) error {
	c := ledger.NewCall(op)
	if err := op.Validate(); err != nil {
		return err
	}
	s.memory.run(s.t, []*ledger.Call{c}, s.now, false)
	if c.Err != nil {
		return c.Err
	}
	return nil
}

// taken returns the number of credits that are no longer in the balance. The remaining and held credits may never be
// below zero or above the grant.
func (s *till) taken() int64 {
	credits := s.memory.balances[ledger.BalanceKey{Tenant: Tenant, Meter: "credits"}]
	left := credits.Remaining() + credits.Held
	require.True(s.t, left >= 0 && left <= s.credit && credits.Remaining() >= 0 && credits.Held >= 0,
		"of %d credits there are %d, and %d held", s.credit, credits.Remaining(), credits.Held)
	return s.credit - left
}

// After each partial refund, of any size, the credits taken equal the price of the units not yet refunded. Together
// the partial refunds of a debit return exactly the credits that it took.
func TestPrice_PartsOfRefundsComeToTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := openTill(t)
		reach := min(s.price.MaxUnits(s.credit), ledger.MaxAmount)
		if reach == 0 {
			return
		}
		units := rapid.OneOf(rapid.Int64Range(1, reach), rapid.Just(reach)).Draw(t, "debit")
		debit := s.key()
		require.NoError(t, s.do(&ledger.Debit{Tenant: Tenant, Key: debit, Items: []ledger.Item{{Meter: "tokens", Amount: units}}}))
		require.True(t, s.taken() == s.price.Cost(units), "%d tokens at %v took %d credits", units, s.price, s.taken())
		for left := units; left > 0; {
			part := rapid.Int64Range(1, left).Draw(t, "part")
			if rapid.IntRange(0, 5).Draw(t, "all?") == 0 {
				part = left
			}
			left -= part
			require.NoError(t, s.do(&ledger.Refund{Tenant: Tenant, Key: s.key(), OperationID: debit, Amount: part}),
				"%d of %d", part, left+part)
			require.True(t, s.taken() == s.price.Cost(left),
				"%d tokens at %v are left and keep %d credits", left, s.price, s.taken())
		}
		require.Error(t, s.do(&ledger.Refund{Tenant: Tenant, Key: s.key(), OperationID: debit, Amount: 1}),
			"one more token was refunded")
	})
}

// All captures of a hold together cost the price of the sum of their units, rounded up once. The final capture pays
// the exact price, and the remaining credits return. Later refunds, in any order, add up to the amount that was
// taken.
func TestPrice_CapturesCostTheirUnitsOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := openTill(t)
		reach := min(s.price.MaxUnits(s.credit), ledger.MaxAmount)
		if reach == 0 {
			return
		}
		units := rapid.Int64Range(1, reach).Draw(t, "hold")
		err := s.do(&ledger.Hold{Tenant: Tenant, Key: s.key(), HoldID: "h", Items: []ledger.Item{{Meter: "tokens", Amount: units}}})
		require.NoError(t, err)
		captured, captures := int64(0), []string{}
		final := false
		for captured < units && !final {
			part := rapid.Int64Range(1, units-captured).Draw(t, "capture")
			final = rapid.IntRange(0, 3).Draw(t, "final?") == 0
			captures = append(captures, s.key())
			captured += part
			err := s.do(&ledger.HoldChange{
				Tenant: Tenant, Key: captures[len(captures)-1], HoldID: "h", Action: ledger.ActionCapture, Final: final,
				Items: []ledger.Item{{Meter: "tokens", Amount: part}},
			})
			require.NoError(t, err, "capture of %d, %d of %d", part, captured, units)
			if cost := s.price.Cost(captured); s.taken() > cost || s.taken() < cost-1 {
				t.Fatalf("%d of %d tokens at %v were captured for %d credits", captured, units, s.price, s.taken())
			}
		}
		require.True(t, s.taken() == s.price.Cost(captured),
			"in the end %d tokens at %v have taken %d credits", captured, s.price, s.taken())
		for len(captures) > 0 {
			i := rapid.IntRange(0, len(captures)-1).Draw(t, "refund")
			before := s.taken()
			err := s.do(&ledger.Refund{Tenant: Tenant, Key: s.key(), OperationID: captures[i], Amount: rapid.Int64Range(0, 9).Draw(t, "part")})
			require.True(t, s.taken() <= before, "a refund has taken %d credits", s.taken()-before)
			if err != nil || s.serial > 80 { // less than the part is left, or the capture is large: refund the rest
				_ = s.do(&ledger.Refund{Tenant: Tenant, Key: s.key(), OperationID: captures[i]})
				captures = append(captures[:i], captures[i+1:]...)
			}
		}
		require.Zero(t, s.taken(), "all was refunded, and %d credits are gone", s.taken())
	})
}
