package gate

import (
	"net/netip"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Mode says what happens to a debit the balance cannot pay in full.
type Mode = ledger.Mode

// ModeNormal is all or nothing; an empty Mode means the same.
const ModeNormal = ledger.ModeNormal

// Request asks for units of one tenant. The same request serves Check, Consume and Debit, so that a check asks exactly what
// the debit after it will.
type Request struct {
	Tenant string

	// Items are what is asked for, 1..ledger.ItemsMax, each meter once. StoreDenial is the gate's to set.
	Items []ledger.Item

	// Subject is recorded with the entries and is the `per: subject` dimension of limits; '' = none.
	Subject string

	// Route and IP are what limits match and divide their buckets by; empty = not named by the caller. Blocks know IP too.
	Route string
	IP    netip.Addr

	// MaxStale bounds the age of the copies a check may answer from; nil leaves it to the cache, zero or less asks
	// PostgreSQL. Debits ignore it.
	MaxStale *time.Duration

	// Key is the Idempotency-Key of Consume and Debit. A dry run and a check need none.
	Key string

	// Mode of Consume and Debit. A check always asks for everything.
	Mode     Mode
	Metadata []byte // JSON object or nil, kept with the entries

	// DryRun decides without charging limits or writing anything.
	DryRun bool

	// Passage is what a gateway is asked to let through, its method and URI; '' = the request is not a gateway's. A key is
	// good for one passage, and refused as reused for another. A replay keeps its tokens charged: it was paid for in units, but
	// every passage is traffic. Check ignores it.
	Passage string
}

// Source says where the balances of a check came from.
type Source string

// The sources of a check's balances. When the items differ, the least fresh one is reported: local before cache before
// ledger.
const (
	SourceLedger Source = "ledger" // PostgreSQL, now
	SourceCache  Source = "cache"  // the newest copy that Redis or this process holds
	SourceLocal  Source = "local"  // a copy in this process, Redis being away or not configured
)

// Check is the answer to "would this be allowed now?". Nothing was charged.
type Check struct {
	Allowed bool

	// Code says why not: what Consume would have failed with. Blocks come first, then limits, as in Consume. '' = allowed.
	Code ledger.Code

	// Blocked is set on forbidden.
	Blocked *Blocked

	// Item is the index of the item that Code is about; -1 when it is about none.
	Item int

	// Limiting is set on quota_exceeded and credits_exhausted.
	Limiting *ledger.Limiting

	// RetryAfter is when asking again may help; zero when waiting does not help or nothing is known.
	RetryAfter time.Duration

	Items  []CheckItem
	Limits []LimitVerdict
	Source Source
	AsOf   time.Time // the oldest of the balances used; never zero

	// Degraded says that a backend was away: balances may be older than asked for, or limits were decided locally.
	Degraded bool

	// LimitsDegraded says that it was the limits.
	LimitsDegraded bool
}

// CheckItem is the answer to one item of a check.
type CheckItem struct {
	Meter     string
	Required  int64
	Remaining int64
	Limit     int64 // see ledger.Position.Limit

	// MaxAllowedNow is the largest amount of this meter alone that would be allowed now.
	MaxAllowedNow int64

	// ResetAt is the period's end; zero when the period has none.
	ResetAt time.Time

	// WouldSucceedAt is when the item would be allowed if nothing else is used until then; zero when it is allowed now or
	// when no known event makes it succeed. A copy knows one event, the period's end, and of what there will be then only
	// the allowance: an answer from a copy may be zero, or later, where PostgreSQL's is not.
	WouldSucceedAt time.Time

	Code ledger.Code // '' = allowed

	// Limiting says what is short; zero where Code is another refusal or none.
	Limiting ledger.Limiting
}

// LimitVerdict is what one rate limit said about a request. A rule that lets everything pass while Redis is away says
// nothing and has none.
type LimitVerdict struct {
	Rule     string
	Kind     string // as in the catalogue
	Replaces string // the rule that Rule stands in for; '' = none
	Allowed  bool

	// Remaining is how many whole tokens are left after the decision; Limit is the bucket's capacity.
	Remaining, Limit int64

	// Quota tokens per WindowSeconds is the rule's rate, in whole seconds. Of a concurrency rule Quota is its capacity, and
	// there is no window.
	Quota, WindowSeconds int64

	Concurrent bool // it counts what is under way at a time
	Window     bool // its tokens come back all at once, for everybody whom it turned away

	// RetryAfter is when the same cost would pass; zero when it passed or never will.
	RetryAfter time.Duration

	// Reset is when one more token becomes available; zero when the bucket is full.
	Reset time.Duration

	// Delay is how long an admitted request has to wait for its turn in a leaky bucket; zero for all other kinds.
	Delay time.Duration

	Shadow   bool // counts and never denies
	Never    bool // the cost is above the capacity: waiting does not help
	Degraded bool // decided without the shared store
}

// Debited is the answer to a debit that was made, now or earlier.
type Debited struct {
	Result *ledger.DebitResult
	Limits []LimitVerdict // of Consume; nil for Debit

	// LimitsDegraded says that the limits were decided without the shared store.
	LimitsDegraded bool
}

// DebitOutcome is what became of one debit of a batch: exactly one field is set.
type DebitOutcome struct {
	Result *ledger.DebitResult
	Err    error // what Debit would have returned
}
