package balances

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// defaultFreshFor is the default of Policy.FreshFor. Copies are replaced within milliseconds of each COMMIT. The
	// bound matters only when an instance died between its COMMIT and its publication: checks may be wrong for 30 s
	// then. The price is one read of PostgreSQL per 30 s, instance and idle balance.
	defaultFreshFor = 30 * time.Second

	// TermsMargin is how long after the stamp of a change of terms a copy may still lack the change: a transaction of
	// the catalogue that writes one object takes at most 5 s, and a concurrent debit does not wait for it. The price
	// is that checks of this tenant read PostgreSQL for 5 s after each change; checks that wait share one read.
	TermsMargin = 5 * time.Second

	// AwayFreshFor is the age up to which an unconfirmed copy answers a check while Redis is away. Without it every
	// check would read PostgreSQL during an outage of Redis. The price is that a degraded answer may be wrong for one
	// second; the gain is that PostgreSQL gets at most one read per second, instance and balance in use.
	AwayFreshFor = time.Second

	// ReadPatience bounds the wait for PostgreSQL in ReadWithin. A read takes well under 1 ms. A slower read goes on in
	// the background and fills the copy for the next check.
	ReadPatience = 25 * time.Millisecond
)

// Action is what a check does with its copies. The order is from the most careful action to the fastest: a check of
// several items takes the smallest action of its copies.
type Action uint8

// The actions. A "degraded" answer is marked so: it may be older than the caller wants.
const (
	Read          Action = iota // read PostgreSQL; the copies cannot replace its answer
	ReadOrUse                   // read PostgreSQL; if it does not answer, use the copies, degraded
	ReadIfSpare                 // as ReadOrUse if one of a few slots is free; else use the copies, degraded
	ReadWithin                  // as ReadIfSpare, and wait for PostgreSQL no longer than ReadPatience
	UseDegraded                 // use the copies, degraded
	UseAndRefresh               // use the copies, and read the balances again in the background
	Use                         // use the copies
)

// Facts are what Policy.For needs about a check.
type Facts struct {
	Items          []ledger.Item  // one per copy
	Subject        string         // empty: none
	MaxStale       *time.Duration // the oldest copy the caller accepts; nil: Policy decides; zero or less: none
	TermsChangedAt time.Time      // when the tenant's terms last changed, plus TermsMargin; an older copy may have the wrong allowance
	RedisAway      bool           // Redis did not answer this check
	PostgresAway   bool           // PostgreSQL failed a moment ago
	Now            time.Time
}

// Policy decides what checks do with copies. See the table in the package documentation.
type Policy struct {
	// FreshFor bounds the age of a copy that answers a check which names no MaxStale. It is greater than 0.
	FreshFor time.Duration
}

// For returns what a check does with its copies. A check has one copy for each item in f.Items.
func (p Policy) For(copies []Cached, f *Facts) Action {
	action := Use
	for i := range copies {
		action = min(action, p.permits(&copies[i], f.Items[i].Amount, f))
	}
	return action
}

// permits returns the action that one copy permits to a check of amount units.
func (p Policy) permits(c *Cached, amount int64, f *Facts) Action {
	switch {
	case c.Copy == nil, ended(c.Copy, f.Now), c.Copy.Beyond && !sufficient(c.Copy, amount, f.Subject):
		return Read
	case p.fresh(c, f):
		if f.MaxStale == nil && p.refreshDue(c.Copy, f.Now) {
			return UseAndRefresh
		}
		return Use
	case f.PostgresAway:
		return UseDegraded
	case f.MaxStale != nil, !current(c.Copy, f), f.Now.Sub(c.Copy.AsOf) > p.FreshFor:
		return ReadOrUse
	case c.Unwanted: // the first check of a balance, as if there were no copy
		return ReadOrUse
	case !f.RedisAway:
		return ReadIfSpare
	case f.Now.Sub(c.Copy.AsOf) > AwayFreshFor:
		return ReadWithin
	default:
		return UseDegraded
	}
}

// fresh reports whether c, which has not ended, can answer a check in place of PostgreSQL.
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

// refreshDue reports whether a copy should be read again before it is older than FreshFor. Each copy becomes due at
// its own point between 75 % and 95 % of FreshFor. So copies that were read together, for example after a start, are
// not due together.
func (p Policy) refreshDue(c *ledger.BalanceCopy, now time.Time) bool {
	least, spread := p.FreshFor*3/4, p.FreshFor/5
	part := uint64(c.AsOf.UnixMicro()) * 0x9e3779b97f4a7c15 >> 54 // 0..1023; a Fibonacci hash spreads neighbouring instants
	return now.Sub(c.AsOf) > least+spread*time.Duration(part)/1024
}

// current reports whether c is complete and was read under the tenant's present terms.
func current(c *ledger.BalanceCopy, f *Facts) bool {
	return !c.Beyond && !c.AsOf.Before(f.TermsChangedAt)
}

// ended reports whether an event was due since c was read, such as the end of its period. The copy then says nothing
// about the present balance.
func ended(c *ledger.BalanceCopy, now time.Time) bool {
	return !c.ValidUntil.IsZero() && !now.Before(c.ValidUntil)
}

// sufficient reports whether the units of an incomplete copy pay for amount. They never pay for a subject, because
// its cap may be used up.
func sufficient(c *ledger.BalanceCopy, amount int64, subject string) bool {
	return subject == "" && amount <= c.Remaining
}
