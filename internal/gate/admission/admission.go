package admission

import (
	"context"
	"errors"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/gate/newcomer"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/report/denial"
)

// CodeFeatureNotInPlan refuses a request whose tenant's plan does not grant the feature.
const CodeFeatureNotInPlan ledger.Code = "feature_not_in_plan"

// Admission stands before a gate.
type Admission struct {
	gate    *gate.Gate
	catalog *catalog.Catalog
	desk    *newcomer.Desk
	denials *denial.Recorder
	now     func() time.Time
}

// New returns the admission to a gate. c is the gate's catalogue, desk its newcomers, and denials its memory of refusals, which may be nil.
func New(g *gate.Gate, c *catalog.Catalog, desk *newcomer.Desk, denials *denial.Recorder) *Admission {
	return &Admission{gate: g, catalog: c, desk: desk, denials: denials, now: time.Now}
}

// Check is Gate.Check, for requests with a feature too. A request without items asks for its feature alone: no limit and no balance is asked.
func (a *Admission) Check(ctx context.Context, req gate.Request) (gate.Check, error) {
	if req.Feature != "" {
		out, err := a.feature(ctx, &req)
		if err != nil || !out.Allowed || len(req.Items) == 0 {
			return out, err
		}
	}
	return a.gate.Check(ctx, req)
}

// CheckBatch is Gate.CheckBatch in the same way.
func (a *Admission) CheckBatch(ctx context.Context, reqs []gate.Request) []gate.CheckOutcome {
	out := make([]gate.CheckOutcome, len(reqs))
	rest, at := make([]gate.Request, 0, len(reqs)), make([]int, 0, len(reqs))
	for i := range reqs {
		if reqs[i].Feature != "" {
			check, err := a.feature(ctx, &reqs[i])
			if err != nil || !check.Allowed || len(reqs[i].Items) == 0 {
				out[i] = gate.CheckOutcome{Check: check, Err: err}
				continue
			}
		}
		rest, at = append(rest, reqs[i]), append(at, i)
	}
	for i, o := range a.gate.CheckBatch(ctx, rest) {
		out[at[i]] = o
	}
	return out
}

// Consume is Gate.Consume, for requests with a feature too. One without items moves nothing, and leaves no trace of its key.
func (a *Admission) Consume(ctx context.Context, req gate.Request) (gate.Debited, error) {
	if req.Feature != "" {
		out, err := a.feature(ctx, &req)
		if err != nil {
			return gate.Debited{}, err
		}
		if !out.Allowed {
			a.refused(ctx, &req, out.Code)
			return gate.Debited{}, refusal(&req, &out)
		}
		if len(req.Items) == 0 {
			return gate.Debited{Result: &ledger.DebitResult{OperationID: req.Key, Tenant: req.Tenant, Items: []ledger.ItemResult{}, AsOf: out.AsOf}}, nil
		}
	}
	return a.gate.Consume(ctx, req)
}

// refused notes the refusal of a consume for whoever asks why.
func (a *Admission) refused(ctx context.Context, req *gate.Request, code ledger.Code) {
	if req.DryRun {
		return
	}
	d := denial.Denial{Tenant: req.Tenant, Code: string(code), Subject: req.Subject, Route: req.Route, RequestID: auditlog.From(ctx).RequestID}
	if len(req.Items) == 1 {
		d.Meter = req.Items[0].Meter
	}
	a.denials.Note(&d)
}

// Features returns a tenant's plan, all features that it has now, and those of them that it overrides.
func (a *Admission) Features(ctx context.Context, tenant string) (plan string, all, own feature.Set, err error) {
	t, err := a.tenant(ctx, tenant)
	if err != nil {
		return "", nil, nil, err
	}
	return t.Plan, feature.Of(a.ofPlan(t.Plan), t.Features), t.Features, nil
}

// feature answers whether the tenant may use the feature of req, from memory.
func (a *Admission) feature(ctx context.Context, req *gate.Request) (gate.Check, error) {
	out := gate.Check{Item: -1, Source: gate.SourceLocal, AsOf: a.now().UTC()}
	if blocked, _ := a.catalog.Blocks().Find(req.Tenant, req.Subject, req.IP, out.AsOf); blocked != nil {
		out.Code = gate.CodeForbidden
		out.Blocked = &gate.Blocked{Kind: blocked.Kind, Value: blocked.Value, Reason: blocked.Reason, ExpiresAt: blocked.ExpiresAt}
		return out, nil
	}
	t, err := a.tenant(ctx, req.Tenant)
	switch {
	case err != nil:
		return out, err
	case t.Suspended:
		out.Code = ledger.CodeTenantSuspended
	case !feature.Lookup(a.ofPlan(t.Plan), t.Features, req.Feature).Granted():
		out.Code = CodeFeatureNotInPlan
	default:
		out.Allowed = true
	}
	return out, nil
}

// ofPlan returns the features of the newest version of a plan.
func (a *Admission) ofPlan(plan string) feature.Set {
	if p := a.catalog.Snapshot().Plans[plan]; p != nil {
		return p.Features
	}
	return nil
}

// tenant returns a tenant, or the one that a newcomer would be, or a *ledger.Error.
func (a *Admission) tenant(ctx context.Context, id string) (catalog.TenantFacts, error) {
	t, err := a.catalog.Tenant(ctx, id)
	switch {
	case errors.Is(err, catalog.ErrNoTenant), errors.Is(err, catalog.ErrInvalid):
		if plan, ok := a.desk.Plan(id); ok {
			return catalog.TenantFacts{ID: id, Plan: plan.ID}, nil
		}
		return t, ledger.Errorf(ledger.CodeTenantNotFound, "tenant", "tenant %q does not exist", id)
	case err != nil:
		return t, &ledger.Error{
			Code: ledger.CodeUnavailable, Detail: "the tenant could not be looked up; this attempt did nothing", RetryAfter: time.Second, Cause: err,
		}
	}
	return t, nil
}

// Known does what needs a limit by its name, and does it once more if there seems to be no such limit, and the catalogue has changed since this
// process read it: whoever has just made the limit finds it.
func Known[R any](ctx context.Context, a *Admission, do func() (R, error)) (R, error) {
	before := a.catalog.Snapshot()
	result, err := do()
	if gate.CodeOf(err) == ledger.CodeNotFound && (a.catalog.CatchUp(ctx) || a.catalog.Snapshot() != before) { // or read while do looked
		return do()
	}
	return result, err
}

// refusal returns the error of a consume that a check denied.
func refusal(req *gate.Request, out *gate.Check) error {
	switch out.Code {
	case gate.CodeForbidden:
		return out.Blocked
	case ledger.CodeTenantSuspended:
		return ledger.Errorf(out.Code, "tenant", "tenant %q is suspended", req.Tenant)
	default:
		return ledger.Errorf(out.Code, "feature", "the plan of tenant %q does not grant %q", req.Tenant, req.Feature)
	}
}
