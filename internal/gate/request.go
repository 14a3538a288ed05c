package gate

import (
	"net/netip"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/route"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Request asks for units of one tenant. Check, Consume and Debit take the same request, so that a check covers
// exactly the units of the next debit.
type Request struct {
	Tenant string

	// Items are the requested units: 1..ledger.ItemsMax items, each meter once. The gate sets StoreDenial.
	Items []ledger.Item

	// Feature must be granted by the tenant's plan; empty: none. A check or consume with a feature may have no items.
	// Debits ignore it.
	Feature string

	// Subject is recorded with the entries, and is the `per: subject` dimension of limits; empty: none.
	Subject string

	// Route and IP are matched by limits, and are dimensions of their buckets; empty: not named by the caller. Blocks
	// match IP.
	Route string
	IP    netip.Addr

	// Method is matched by limits, in upper case; empty: not named by the caller.
	Method string

	// MaxStale bounds the age of the copies that a check may use. nil: balances.Config.FreshFor; zero or less: no
	// copy, PostgreSQL is read. Debits ignore it.
	MaxStale *time.Duration

	// Key is the Idempotency-Key of Consume and Debit. Dry runs and checks need none.
	Key string

	// Mode says what Consume and Debit do if the balance does not suffice. A check always checks all units.
	Mode     ledger.Mode
	Metadata []byte // a JSON object or nil; stored with the entries

	// DryRun makes Consume and Debit decide without charging limits and without writing.
	DryRun bool

	// At is the future instant for which a dry run of a debit decides; zero: now.
	At time.Time

	// Forwarded is the method and URI of the request that a gateway forwards; empty: there is no gateway. A key is
	// valid for one such request, and is refused as reused for another request. A replay is not debited again, but
	// its limits stay charged, because it is one more request. A check only examines whether the field is empty. If
	// it is not, limits treat different spellings of a route as equal by default.
	Forwarded string

	spelled route.Spellings // the spellings of Route that limits needed so far
}

// The ways of a request: it is the caller's own, or a gateway forwards it.
const (
	direct = iota
	atGateway
)

func (req *Request) way() int {
	if req.Forwarded != "" {
		return atGateway
	}
	return direct
}

// routeIn returns the route in the spelling that forms make equal.
func (req *Request) routeIn(forms route.Forms) string {
	if forms == 0 {
		return req.Route
	}
	return req.spelled.In(req.Route, forms)
}

// Source is where the balances of a check came from.
type Source string

// The sources of a check's balances.
const (
	SourceLedger Source = "ledger" // PostgreSQL, now
	SourceCache  Source = "cache"  // the newest copies in Redis and this process
	SourceLocal  Source = "local"  // copies in this process: Redis is away or not configured
)

// Check is the answer to "would this request be allowed now?". Nothing was charged.
type Check struct {
	Allowed bool

	// Code is the reason why the request is not allowed: the code that Consume would fail with. Empty: it is allowed.
	Code errcode.Code

	// Blocked is set on forbidden.
	Blocked *Blocked

	// Item is the index of the item that Code is about; -1: none.
	Item int

	// Limiting is set on quota_exceeded and credits_exhausted.
	Limiting *ledger.Limiting

	// RetryAfter is the time until a retry may succeed; zero if waiting does not help, or if the time is not known.
	RetryAfter time.Duration

	Items  []CheckItem
	Limits []LimitVerdict
	Source Source
	AsOf   time.Time // when the oldest of the balances was read; never zero

	// Degraded means that a backend was away: balances may be older than the caller accepts, or limits were decided
	// locally.
	Degraded bool

	// LimitsDegraded means that limits were decided without Redis.
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

	// ResetAt is the period's end; zero if the period has none.
	ResetAt time.Time

	// WouldSucceedAt is when the item would be allowed if nothing else is used until then. It is zero if the item is
	// allowed now, or if no known event allows it. A copy has only one event, the period's end, and counts only the
	// allowance of the next period. So the instant from a copy may be zero, or later than the instant from
	// PostgreSQL.
	WouldSucceedAt time.Time

	Code errcode.Code // empty: allowed

	// Limiting is the balance that does not suffice; zero if Code is another refusal or empty.
	Limiting ledger.Limiting
}

// LimitVerdict is the verdict of one rate limit on a request. An open rule has no verdict while Redis is away,
// because requests are not counted then.
type LimitVerdict struct {
	Rule     string
	Kind     string // as in the catalogue
	Replaces string // the rule that Rule replaces; empty: none
	Allowed  bool

	// Remaining is the number of whole tokens left after the decision; Limit is the bucket's capacity.
	Remaining, Limit int64

	// Policy is the rule's member of the RateLimit-Policy header.
	Policy string

	Concurrent bool // the rule counts concurrent leases, not requests per time
	Window     bool // its tokens come back all at once: all refused callers could retry at the same moment

	// RetryAfter is the time until the same cost would pass; zero if it passed or never will.
	RetryAfter time.Duration

	// Banned is the time until the bucket's ban ends; zero if it is not banned.
	Banned time.Duration

	// Next is the time until one more token is available. Full is the time until the bucket is full. Both are zero if
	// the bucket is full.
	Next, Full time.Duration

	// Delay is how long an admitted request must wait in a leaky bucket; zero for all other kinds.
	Delay time.Duration

	// Charged is the number of tokens that the request took.
	Charged int64

	Late     bool // a charge after the fact took the tokens
	Shadow   bool // the rule counts and never denies
	Never    bool // the cost exceeds the capacity: waiting does not help
	Degraded bool // decided without Redis
}

// Debited is the answer to Consume or Debit. With an error, Result is nil and Limits has the verdicts so far.
type Debited struct {
	Result *ledger.DebitResult
	Limits []LimitVerdict // of Consume; nil for Debit

	// LimitsDegraded means that the limits were decided without Redis.
	LimitsDegraded bool
}

// replayed reports whether the debit was made earlier.
func (d *Debited) replayed() bool { return d.Result != nil && d.Result.Replayed }

// DebitOutcome is the outcome of one debit of a batch: exactly one field is set.
type DebitOutcome struct {
	Result *ledger.DebitResult
	Err    error // as Debit would return it
}
