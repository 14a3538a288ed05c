package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// BalanceKey names a balance.
type BalanceKey struct {
	Tenant, Meter string
	Subject       string // empty: the tenant's own balance
}

// CompareKeys orders balances by tenant, meter and subject. Balances are locked in this order.
func CompareKeys(a, b BalanceKey) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Meter, b.Meter), cmp.Compare(a.Subject, b.Subject))
}

// NamesOf returns the tenants and the meters of keys, sorted and each once.
func NamesOf(keys []BalanceKey) (tenants, meters []string) {
	for _, k := range keys {
		tenants, meters = append(tenants, k.Tenant), append(meters, k.Meter)
	}
	slices.Sort(tenants)
	slices.Sort(meters)
	return slices.Compact(tenants), slices.Compact(meters)
}

// Sums are the totals of one period's entries, in the meter's smallest unit.
type Sums struct {
	Opening  int64 // remaining and held units that the period began with
	Granted  int64
	Amended  int64 // what changes of terms added to the period's allowance; may be negative
	Refunded int64
	Used     int64
	Expired  int64
	Adjusted int64 // may be negative
	Held     int64 // units that holds of this and of earlier periods reserve
	Overage  int64 // use that no grant paid
	Owed     int64 // part of Overage that comes from earlier periods
	Paid     int64 // overage of earlier periods that this period's allowance and rollover have paid
}

// Apply adds an entry to the sums and returns the remaining units. It panics for an unknown kind, which is a bug.
func (s *Sums) Apply(kind EntryKind, amount int64) (remaining int64) {
	m, known := moves[kind]
	if !known {
		panic("ledger: entry of unknown kind " + string(kind))
	}
	s.Granted += m.Granted * amount
	s.Amended += m.Amended * amount
	s.Refunded += m.Refunded * amount
	s.Used += m.Used * amount
	s.Expired += m.Expired * amount
	s.Adjusted += m.Adjusted * amount
	s.Held += m.Held * amount
	s.Overage += m.Overage * amount
	s.Owed += m.Owed * amount
	s.Paid += m.Paid * amount
	return s.Remaining()
}

// Remaining returns the units that can be drawn.
func (s *Sums) Remaining() int64 {
	return s.Opening + s.Granted + s.Amended + s.Refunded - s.Used - s.Expired + s.Adjusted - s.Held
}

// Limit returns the total that can be used in the period. Refunds of debits of earlier periods can exceed the
// period's use. Used - Refunded then counts as 0.
func (s *Sums) Limit() int64 { return max(0, s.Used-s.Refunded) + s.Held + s.Remaining() }

// BalanceRow is a row of the table balances.
type BalanceRow struct {
	BalanceKey
	Sums // sums of the open period

	Seq         int64  // seq of the newest entry
	Plan        string // plan in force; empty: the plan has no such meter
	PlanVersion int32
	Allowance   int64     // amount of the plan in force, or of the tenant's override
	Renews      bool      // the end of the period brings a new allowance
	Start, End  time.Time // Start zero: no period was opened yet. End period.Forever: no end
	// The next fields are about changes inside a period: see change.go.
	Entitled      int64     // what the period's allowance is worth under the terms that have taken effect
	Short         int64     // drawn and held units beyond Entitled; units that come back make up for them first
	Carried       int64     // earlier use that the allowance of the period is less by, without units that came back
	CarriedFrom   time.Time // the use since this instant counts in Carried; zero: no earlier use counts
	OverageBefore int64     // overage since CarriedFrom that counts against the cap, without Overage
	AllowanceAt   time.Time // when the allowance was given as a whole: the start of the period, or a reset
	TermsAt       time.Time // instant of the newest terms that have taken effect
	ForgivenSeq   int64     // seq of the entry that last forgave overage; overage of entries up to this seq is not owed
	HeadID        string    // the head grant, from which the next debit draws; empty: none
	HeadSource    Source
	HeadRemaining int64
	NextEvent     time.Time // no event is due before this instant
	// RollAt is the next instant at which a roll has something to write. This is the end of a hold, the beginning or
	// end of a client's grant, or the end of the open period. The end of the open period counts only if the period
	// has entries besides those of its opening. It is period.Forever if no roll will ever have anything to write.
	RollAt    time.Time
	UpdatedAt time.Time
	Chain     Chain // hash chain of the balance's entries
}

// Opened reports whether the balance has a period.
func (b *BalanceRow) Opened() bool { return !b.Start.IsZero() }

// Position returns the balance's remaining units, its limit, and the end of its period.
func (b *BalanceRow) Position() Position {
	p := Position{Remaining: b.Remaining(), Limit: b.Limit()}
	if b.End.Before(period.Forever) {
		p.ResetAt = b.End
	}
	return p
}

// PeriodRow is a row of the table periods: a closed period, or a run of idle periods. Its sums agree: Closing =
// Remaining + Held.
type PeriodRow struct {
	BalanceKey
	Sums // Owed and Paid are not stored

	Start, End  time.Time
	Plan        string
	PlanVersion int32
	Closing     int64
	LastSeq     int64
	ClosedAt    time.Time

	Idle       int64     // number of periods in the run; 0: an ordinary period
	TermsAt    time.Time // TenantTerms.Since of the terms of the run
	RolledOver int64     // units that rolled over into the first period of the run
	Rollover   int64     // amount of that rollover, including the units that the minimum adds
	Owing      int64     // overage of earlier periods that the first period owed
}

// Balance is a balance at the instant AsOf, after all events that were due by that instant.
type Balance struct {
	BalanceKey
	Sums

	Overflow         int64  // units that other meters paid for; part of no sum. The largest int64 stands for any larger number
	Plan             string // empty: the plan has no such meter
	PlanVersion      int32
	Carried          *int64 // see BalanceRow; nil: unknown, because the period is closed
	Seq              int64
	Remaining, Limit int64
	PeriodStart      time.Time
	PeriodEnd        time.Time     // zero: the period has no end
	Grants           []GrantRecord // open grants in burn order
	AsOf             time.Time
}

// BalanceCopy is the part of a balance that a cache may keep.
type BalanceCopy struct {
	Tenant, Meter, Subject string
	Seq                    int64 // a copy with a higher seq is newer
	Remaining, Limit       int64
	InPlan                 bool      // false: the plan has no such meter; if Seq is 0 as well, no grant was ever issued
	Allowance              int64     // allowance that the end of the period brings, if Renews
	Renews                 bool      // the end of the period brings a new allowance
	ResetAt                time.Time // the end of the period; zero when it has none
	ValidUntil             time.Time // the instant of the next event; from then on the copy is wrong
	// Beyond reports that a debit does not depend on this balance alone: the plan has overflow or overage, or caps
	// subjects. Such a copy proves neither that a debit passes nor that it is denied.
	Beyond bool
	// Derived reports that the copy includes entries that were due but not yet written when the balance was read. The
	// seq of such a copy is that of a later row, or of no row if other entries are written first.
	Derived bool
	AsOf    time.Time
}

// Denies returns the code with which a debit of more units than Remaining is refused. certain is false if the balance
// must be read to know the code: an event may bring the units, or the next period may bring more than its allowance.
func (c *BalanceCopy) Denies(amount int64) (code errcode.Code, certain bool) {
	switch {
	case !c.InPlan && c.Seq == 0:
		return errcode.MeterNotInPlan, true
	case c.Renews:
		return errcode.QuotaExceeded, amount <= c.Allowance
	default:
		return errcode.CreditsExhausted, c.ValidUntil.IsZero() || !c.ValidUntil.Before(period.Forever)
	}
}

// Copy returns the part of the balance that a cache may keep.
func (b *Book) Copy(now time.Time) BalanceCopy {
	c := BalanceCopy{
		Tenant: b.Tenant, Meter: b.Meter, Subject: b.Subject, Seq: b.Seq, Remaining: b.Remaining(), Limit: b.Limit(),
		InPlan: b.Plan != "", Allowance: b.Allowance, Renews: b.Renews, ValidUntil: b.NextEvent, AsOf: now,
		Derived: len(b.Unwritten) > 0,
	}
	if b.UpdatedAt.After(now) { // the clock is behind the last write
		c.AsOf = b.UpdatedAt
	}
	if b.End.Before(period.Forever) {
		c.ResetAt = b.End
	}
	if t := b.Terms; b.Plan != "" && b.Subject == "" {
		c.Beyond = t == nil || t.OverageAllowed || t.OverflowMeter != "" || t.PerSubject != nil
	}
	return c
}

// View returns the balance as callers see it at now.
func (b *Book) View(now time.Time) Balance {
	out := Balance{
		BalanceKey: b.BalanceKey, Sums: b.Sums, Overflow: b.Overflow.In(b.Start),
		Plan: b.Plan, PlanVersion: b.PlanVersion, Carried: new(b.Carried), Seq: b.Seq,
		Remaining: b.Remaining(), Limit: b.Limit(), PeriodStart: b.Start, AsOf: period.Later(now, b.UpdatedAt), Grants: []GrantRecord{},
	}
	if b.End.Before(period.Forever) {
		out.PeriodEnd = b.End
	}
	for _, g := range b.Grants {
		if g.Status == GrantActive || g.Status == GrantPending {
			out.Grants = append(out.Grants, g.GrantRecord.Public())
		}
	}
	return out
}
