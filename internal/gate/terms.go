package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// The dimensions that separate a rule's buckets. The tenant always does: every bucket belongs to one.
const (
	perTenant  = "tenant"
	perSubject = "subject"
	perRoute   = "route"
)

// rule is a limit of the catalogue, ready to be asked.
type rule struct {
	compiled   ratelimit.Rule
	match      catalog.Match
	perSubject bool
	perRoute   bool
}

// compileRule turns a limit into a rule. The error is a *catalog.FieldError.
func compileRule(l *catalog.Limit) (*rule, error) {
	compiled, err := ratelimit.Compile(ratelimit.Spec{
		ID: l.Rule, Kind: l.Kind, Rate: l.Rate, Burst: l.Burst, Cost: l.Cost, Shadow: l.Mode == "shadow", OnBackendError: l.OnBackendError,
	})
	if field, ok := errors.AsType[*ratelimit.FieldError](err); ok {
		return nil, &catalog.FieldError{Field: field.Field, Message: field.Reason}
	}
	if err != nil {
		return nil, &catalog.FieldError{Field: "rule", Message: err.Error()}
	}
	r := &rule{compiled: compiled, match: l.Match}
	for i, per := range l.Per {
		switch per {
		case perTenant:
		case perSubject:
			r.perSubject = true
		case perRoute:
			r.perRoute = true
		default:
			return nil, &catalog.FieldError{
				Field: fmt.Sprintf("per[%d]", i), Message: fmt.Sprintf("%q is not supported; it must be tenant, subject or route", per),
			}
		}
	}
	// A subject is a tenant's, so naming it names the tenant. A route is not: all tenants would share one bucket.
	if !slices.Contains(l.Per, perTenant) && !r.perSubject {
		return nil, &catalog.FieldError{Field: "per", Message: "must contain tenant or subject: buckets shared by tenants are not supported"}
	}
	return r, nil
}

// CheckLimit says whether the gate can enforce l: the catalogue's StoreConfig.CheckLimit. The error is a
// *catalog.FieldError that names the field and its bound.
func CheckLimit(l *catalog.Limit) error {
	_, err := compileRule(l)
	return err
}

// appliesTo says whether the rule is about req, made by a tenant of plan. A rule with a dimension that the request does not
// name is not: there is no bucket it could stand for.
func (r *rule) appliesTo(req *Request, plan string) bool {
	switch {
	case r.match.Plan != "" && r.match.Plan != plan,
		r.match.Route != "" && r.match.Route != req.Route,
		r.perSubject && req.Subject == "",
		r.perRoute && req.Route == "":
		return false
	}
	return r.match.Meter == "" || slices.ContainsFunc(req.Items, func(it ledger.Item) bool { return it.Meter == r.match.Meter })
}

// dimension names req's bucket among those of the rule and tenant.
func (r *rule) dimension(req *Request) string {
	switch {
	case r.perSubject && r.perRoute:
		return ratelimit.Dimension(perSubject, req.Subject, perRoute, req.Route)
	case r.perSubject:
		return ratelimit.Dimension(perSubject, req.Subject)
	case r.perRoute:
		return ratelimit.Dimension(perRoute, req.Route)
	default:
		return ""
	}
}

// facts are what the catalogue knows about a request's tenant. For a tenant that does not exist they are empty: to say so is
// left to the ledger.
type facts struct {
	plan      string
	suspended bool
	rules     []*rule         // candidates: the plan's own first, then the global ones it does not replace
	changedAt time.Time       // when the tenant's terms changed last; older copies may be wrong
	denials   map[string]bool // meters whose denials are stored
}

// rulesFor lists the rules that apply to req, at most ratelimit.MaxCharges.
func (f *facts) rulesFor(req *Request) []*rule {
	var out []*rule
	for _, r := range f.rules {
		if r.appliesTo(req, f.plan) {
			out = append(out, r)
		}
	}
	return out[:min(len(out), ratelimit.MaxCharges)]
}

// itemsOf returns items with what the catalogue says of their meters: whether denials are stored under their key.
func (f *facts) itemsOf(items []ledger.Item) []ledger.Item {
	out := make([]ledger.Item, len(items))
	for i, it := range items {
		out[i] = ledger.Item{Meter: it.Meter, Amount: it.Amount, StoreDenial: f.denials[it.Meter]}
	}
	return out
}

// terms reads facts from the catalogue. It compiles a snapshot's rules once.
type terms struct {
	catalog *catalog.Catalog
	log     *slog.Logger

	mu      sync.Mutex // held while compiling
	current atomic.Pointer[compiledTerms]
}

// compiledTerms are the rules of one snapshot.
type compiledTerms struct {
	snapshot *catalog.Snapshot
	denials  map[string]bool
	plans    map[string][]*rule // by plan, the global ones included
	global   []*rule            // for tenants of no known plan
}

func newTerms(c *catalog.Catalog, log *slog.Logger) *terms { return &terms{catalog: c, log: log} }

// of returns what is known about tenant. The error is a *ledger.Error: whether the tenant is suspended could not be found
// out. The facts then are those of a tenant nobody knows.
func (t *terms) of(ctx context.Context, tenant string) (facts, error) {
	snapshot := t.catalog.Snapshot()
	c := t.current.Load()
	if c == nil || c.snapshot != snapshot {
		c = t.compile(snapshot)
	}
	f := facts{denials: c.denials, rules: c.global}
	known, err := t.catalog.Tenant(ctx, tenant)
	switch {
	case errors.Is(err, catalog.ErrNoTenant), errors.Is(err, catalog.ErrInvalid):
		return f, nil
	case err != nil:
		return f, unavailable("the tenant could not be looked up; nothing was done", err)
	}
	f.plan, f.suspended, f.changedAt = known.Plan, known.Suspended(), known.UpdatedAt
	if plan, ok := snapshot.Plans[known.Plan]; ok {
		f.rules = c.plans[known.Plan]
		if plan.CreatedAt.After(f.changedAt) {
			f.changedAt = plan.CreatedAt
		}
	}
	return f, nil
}

// compile makes snapshot the current one.
func (t *terms) compile(snapshot *catalog.Snapshot) *compiledTerms {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.current.Load(); c != nil && c.snapshot == snapshot {
		return c
	}
	c := &compiledTerms{snapshot: snapshot, denials: map[string]bool{}, plans: make(map[string][]*rule, len(snapshot.Plans))}
	for name := range snapshot.Meters {
		c.denials[name] = snapshot.Meters[name].DenialReplay
	}
	c.global = t.compileRules(snapshot.Limits)
	for name := range snapshot.Plans {
		own := t.compileRules(snapshot.Plans[name].Limits)
		for _, r := range c.global {
			if !slices.ContainsFunc(own, func(o *rule) bool { return o.compiled.ID == r.compiled.ID }) {
				own = append(own, r)
			}
		}
		c.plans[name] = own
	}
	t.current.Store(c)
	return c
}

// compileRules leaves out what it cannot enforce, loudly. It happens when a newer version wrote the catalogue: CheckLimit
// keeps such limits out otherwise.
func (t *terms) compileRules(limits []catalog.Limit) []*rule {
	var out []*rule
	for i := range limits {
		r, err := compileRule(&limits[i])
		if err != nil {
			t.log.Error("limit cannot be enforced by this version", "rule", limits[i].Rule, "error", err)
			continue
		}
		out = append(out, r)
	}
	return out
}
