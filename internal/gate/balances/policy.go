package balances

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// defaultFreshFor is the default of Policy.FreshFor. Copies are replaced within milliseconds of each COMMIT. The
	// bound matters only if an instance dies between its COMMIT and its publication. Then checks may be wrong for 30
	// s. The price of the bound is one read of PostgreSQL per 30 s for each instance and idle balance.
	defaultFreshFor = 30 * time.Second

	// TermsMargin is the time after a change of terms in which a new copy may still lack the change. A transaction of
	// the catalogue that writes one object takes at most 5 s, and a concurrent debit does not wait for it. The price
	// is that checks of this tenant read PostgreSQL for 5 s after each change. Checks that wait share one read.
	TermsMargin = 5 * time.Second

	// AwayFreshFor is the age up to which an unconfirmed copy answers a check while Redis is down. Without it every
	// check would read PostgreSQL during an outage of Redis. The price is that a degraded answer may be wrong for one
	// second. The gain is that PostgreSQL gets at most one read per second from each instance for each balance in
	// use.
	AwayFreshFor = time.Second

	// ReadPatience is the longest wait for PostgreSQL in ReadWithin. A read takes less than 1 ms. A slower read
	// continues in the background and makes a copy for the next check.
	ReadPatience = 25 * time.Millisecond
)

// Action says how a check uses its copies. The values are ordered from the most careful action to the fastest. A
// check of several items takes the smallest action that its copies permit.
type Action uint8

// Values of Action. An answer marked degraded may be older than the caller accepts.
const (
	Read          Action = iota // read PostgreSQL; if it does not answer, the check fails
	ReadOrUse                   // read PostgreSQL; if it does not answer, use the copies, marked degraded
	ReadIfSpare                 // as ReadOrUse if one of a few slots is free; else use the copies, marked degraded
	ReadWithin                  // as ReadIfSpare, but wait for PostgreSQL at most ReadPatience
	UseDegraded                 // use the copies, marked degraded
	UseAndRefresh               // use the copies, and read the balances again in the background
	Use                         // use the copies
)

// Facts are the facts about a check that Policy.For needs.
type Facts struct {
	Items          []ledger.Item  // the items of the check, one for each copy
	Subject        string         // the subject of the check; empty: none
	MaxStale       *time.Duration // largest age that the caller accepts; nil: Policy decides; zero or less: no copy
	TermsChangedAt time.Time      // the tenant's last change of terms, plus TermsMargin; an older copy may have the wrong allowance
	RedisAway      bool           // Redis did not answer this check
	PostgresAway   bool           // PostgreSQL failed to answer a moment ago
	Now            time.Time
}

// Policy decides how checks use copies. See the table in the package comment.
type Policy struct {
	// FreshFor is the largest age of a copy that answers a check without MaxStale. It is greater than 0.
	FreshFor time.Duration
}

// For returns the action of a check. A check has one copy for each item in f.Items.
func (p Policy) For(copies []Cached, f *Facts) Action {
	action := Use
	for i := range copies {
		action = min(action, p.permits(&copies[i], f.Items[i].Amount, f))
	}
	return action
}

// permits returns the action that one copy permits for a check of amount units.
func (p Policy) permits(c *Cached, amount int64, f *Facts) Action {
	switch {
	case c.Copy == nil, ended(c.Copy, f.Now), c.Copy.Beyond && !sufficient(c.Copy, amount, f.Subject):
		return Read
	case known(c.Copy, amount) && p.fresh(c, f):
		if f.MaxStale == nil && p.refreshDue(c.Copy, f.Now) {
			return UseAndRefresh
		}
		return Use
	case f.PostgresAway:
		return UseDegraded
	case f.MaxStale != nil, !current(c.Copy, f), !known(c.Copy, amount), f.Now.Sub(c.Copy.AsOf) > p.FreshFor:
		return ReadOrUse
	case c.Unwanted: // the first check of a balance reads PostgreSQL, as if there were no copy
		return ReadOrUse
	case !f.RedisAway:
		return ReadIfSpare
	case f.Now.Sub(c.Copy.AsOf) > AwayFreshFor:
		return ReadWithin
	default:
		return UseDegraded
	}
}

// known reports whether c shows whether amount passes, and with which code it is refused.
func known(c *ledger.BalanceCopy, amount int64) bool {
	_, certain := c.Denies(amount)
	return amount <= c.Remaining || certain
}

// fresh reports whether c can answer a check in place of PostgreSQL. The caller has checked that c has not ended.
func (p Policy) fresh(c *Cached, f *Facts) bool {
	if !current(c.Copy, f) {
		return false
	}
	age := f.Now.Sub(c.Copy.AsOf)
	if f.MaxStale != nil {
		return *f.MaxStale > 0 && age <= *f.MaxStale
	}
	return c.Confirmed && age <= p.FreshFor
}

// refreshDue reports whether a copy should be read again before it is older than FreshFor. Each copy becomes due at a
// different age between 75 % and 95 % of FreshFor. So copies that were read together, for example after a start, do
// not become due together.
func (p Policy) refreshDue(c *ledger.BalanceCopy, now time.Time) bool {
	least, spread := p.FreshFor*3/4, p.FreshFor/5
	part := uint64(c.AsOf.UnixMicro()) * 0x9e3779b97f4a7c15 >> 54 // 0..1023; a Fibonacci hash spreads close instants
	return now.Sub(c.AsOf) > least+spread*time.Duration(part)/1024
}

// current reports whether c is complete and was read after the last change of the tenant's terms.
func current(c *ledger.BalanceCopy, f *Facts) bool {
	return !c.Beyond && !c.AsOf.Before(f.TermsChangedAt)
}

// ended reports whether an event, such as the end of the period, has become due since c was read. Then c no longer
// shows the present balance.
func ended(c *ledger.BalanceCopy, now time.Time) bool {
	return !c.ValidUntil.IsZero() && !now.Before(c.ValidUntil)
}

// sufficient reports whether the units of an incomplete copy suffice for amount. For a subject it returns false,
// because the subject's cap may be used up.
func sufficient(c *ledger.BalanceCopy, amount int64, subject string) bool {
	return subject == "" && amount <= c.Remaining
}
