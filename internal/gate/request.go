package gate

import (
	"net/netip"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/route"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Request is a request for units of one tenant. Check, Consume and Debit have the same request type, so that a check
// covers exactly the units of the next debit.
type Request struct {
	Tenant string

	// Items are the requested units: 1..ledger.ItemsMax items, each meter once. The gate sets StoreDenial.
	Items []ledger.Item

	// Feature is the name of a feature that the tenant must have, from its plan or its own overrides; empty: none. A
	// check or consume with a feature may have no items. Debits ignore it.
	Feature string

	// Subject is stored with the entries. In limits it is the dimension `per: subject`; empty: none.
	Subject string

	// Route and IP are compared with limits, and are dimensions of their buckets; empty: the caller did not name
	// them. IP is also compared with blocks.
	Route string
	IP    netip.Addr

	// Method is an HTTP method in upper case that is compared with limits; empty: the caller did not name it.
	Method string

	// MaxStale is the largest age of copies that a check may use. nil: balances.Config.FreshFor. Zero or less: the
	// check uses no copy and reads PostgreSQL. Debits ignore it.
	MaxStale *time.Duration

	// Key is the Idempotency-Key of Consume and Debit. Dry runs and checks do not need a key.
	Key string

	// Mode says what Consume and Debit do if the balance does not suffice. A check always requires all units.
	Mode     ledger.Mode
	Metadata []byte // a JSON object or nil; stored with the entries

	// DryRun makes Consume and Debit decide without charging limits and without writing.
	DryRun bool

	// At is the future instant for which a dry run of a debit decides; zero: the present.
	At time.Time

	// Forwarded is the method and URI of the request that a gateway forwards; empty: no gateway. A key is valid for
	// one such request, and is refused as reused for another request. A replay is not debited again. A check uses only
	// whether Forwarded is empty. If it is not empty, limits treat different spellings of a route as equal by default.
	Forwarded string

	// Once is the id of a request that a gateway forwards; empty: none. A rule that a request of the tenant with this
	// id has charged in the last ratelimit.OnceFor is not charged again. What was refused is not remembered. A check
	// does not use it.
	Once string

	spelled route.Spellings // the spellings of Route that limits have needed so far
}

// Values of Request.way: the caller sends its own request, or a gateway forwards a request.
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

// routeIn returns the route, normalized in the given forms.
func (req *Request) routeIn(forms route.Forms) string {
	if forms == 0 {
		return req.Route
	}
	return req.spelled.In(req.Route, forms)
}

// Source says where the balances of a check come from.
type Source string

// Values of Source.
const (
	SourceLedger Source = "ledger" // PostgreSQL, now
	SourceCache  Source = "cache"  // the newest copies in Redis and this process
	SourceLocal  Source = "local"  // copies in this process: Redis is down or not configured
)

// Check is the answer to "would this request be allowed now?". Nothing was charged.
type Check struct {
	Allowed bool

	// Code is the code with which Consume would fail. Empty: the request is allowed.
	Code errcode.Code

	// Blocked is set if Code is CodeForbidden.
	Blocked *Blocked

	// Item is the index of the item that is refused; -1: no item is the reason.
	Item int

	// Limiting is set if Code is errcode.QuotaExceeded or errcode.CreditsExhausted.
	Limiting *ledger.Limiting

	// RetryAfter is the time until a retry may succeed. It is zero if waiting does not help, or if the time is not
	// known.
	RetryAfter time.Duration

	Items  []CheckItem
	Limits []LimitVerdict
	Source Source
	AsOf   time.Time // the instant of the oldest balance; never zero

	// Degraded means that a backend did not answer. Balances may be older than the caller accepts, or limits were
	// decided in this process.
	Degraded bool

	// LimitsDegraded means that limits were decided without Redis.
	LimitsDegraded bool

	refusal *errcode.Error // the ledger's refusal of all items together, if the ledger answered
}

// CheckItem is the answer about one item of a check.
type CheckItem struct {
	Meter     string
	Required  int64
	Remaining int64
	Limit     int64            // see ledger.Position.Limit
	Cap       *ledger.Position // position of the subject's cap; nil: no cap, or the answer is from a copy

	// MaxAllowedNow is the largest amount of this meter that would be allowed now, without other items.
	MaxAllowedNow int64

	// ResetAt is the end of the period. It is zero if the period has no end.
	ResetAt time.Time

	// WouldSucceedAt is the instant at which the item would be allowed if nothing else is used until then. It is zero
	// if the item is allowed now, or if no known event makes it allowed. A copy knows only one event, the end of the
	// period, and only the allowance of the next period. So from a copy, the instant may be zero, or later than the
	// instant from PostgreSQL.
	WouldSucceedAt time.Time

	Code errcode.Code // empty: the item is allowed

	// Limiting is the balance that does not suffice. It is zero if the item is allowed or is refused for another
	// reason.
	Limiting ledger.Limiting
}

// Position returns the position of the item's balance.
func (i *CheckItem) Position() ledger.Position {
	return ledger.Position{Remaining: i.Remaining, Limit: i.Limit, ResetAt: i.ResetAt}
}

// LimitVerdict is the verdict of one rate limit on a request. While Redis is down, a rule with on_backend_error open
// has no verdict, because its requests are not counted.
type LimitVerdict struct {
	Rule     string
	Kind     string // kind of the limit, as in the catalogue
	Replaces string // the rule that Rule replaces; empty: none
	Allowed  bool

	// Remaining is the number of whole tokens after the decision. Limit is the capacity of the bucket.
	Remaining, Limit int64

	// Policy is the rule's member of the RateLimit-Policy header.
	Policy string

	Concurrent bool // the rule limits leases held at a time, not requests per time
	Window     bool // its tokens come back all at once, so all refused callers could retry at the same moment

	// RetryAfter is the time until the same cost would pass. It is zero if the cost passed or can never pass.
	RetryAfter time.Duration

	// Banned is the time until the bucket's ban ends. It is zero if the bucket is not banned.
	Banned time.Duration

	// Next is the time until one more token is available. Full is the time until the bucket is full. Both are zero if
	// the bucket is full.
	Next, Full time.Duration

	// Delay is the time that an admitted request must wait in a leaky bucket. It is zero for all other kinds.
	Delay time.Duration

	// Charged is the number of tokens that the request took.
	Charged int64

	Late     bool // the tokens were taken after the work was done
	Shadow   bool // the rule is in shadow mode: it counts and never denies
	Never    bool // the cost exceeds the capacity: waiting does not help
	Degraded bool // Redis did not decide
}

// Debited is the answer to Consume or Debit. If the call fails, Result is nil and Limits contains the verdicts so
// far.
type Debited struct {
	Result *ledger.DebitResult
	Limits []LimitVerdict // verdicts of Consume; nil for Debit

	// LimitsDegraded means that the limits were decided without Redis.
	LimitsDegraded bool
}

// replayed reports whether the debit was made earlier.
func (d *Debited) replayed() bool { return d.Result != nil && d.Result.Replayed }

// DebitOutcome is the outcome of one debit of a batch: exactly one field is set.
type DebitOutcome struct {
	Result *ledger.DebitResult
	Err    error // the error of Debit
}
