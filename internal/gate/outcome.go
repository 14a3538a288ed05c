package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/report/denial"
)

// outcome is the outcome of a request. observe counts it and remembers refusals.
type outcome struct {
	operation string   // operation label in the metric of decisions
	plan      string   // the tenant's plan; empty: the tenant has no plan
	req       *Request // tenant, subject, route and items. A dry run is counted only as a decision

	limits   []LimitVerdict
	debit    *ledger.DebitResult // result of a consume or debit; nil: nothing was debited
	capture  *ledger.HoldResult  // result of a capture; nil: nothing was captured
	replayed bool
	err      error
}

// observe counts an outcome in the metric of decisions and in the counters by plan and meter. It also passes refusals
// and decisions of limits in shadow mode to package denial.
func (g *Gate) observe(ctx context.Context, o *outcome) {
	g.metrics.decisions.WithLabelValues(o.operation, decisionLabel(o.err, o.replayed)).Inc()
	if o.req.DryRun {
		return
	}
	code, refuses, ofPlan := refusalCode(o.err)
	g.countByName(o, code, ofPlan)
	if refuses {
		g.noteDenial(ctx, o, code)
	}
	if refuses || o.err == nil {
		g.noteShadows(o, refuses)
	}
}

// decisionLabel returns the value of the label outcome for a decision.
func decisionLabel(err error, replayed bool) string {
	switch {
	case err == nil && replayed:
		return "replayed"
	case err == nil:
		return "allowed"
	}
	return string(CodeOf(err))
}

// refusalCode returns the code of err. refuses is false if err is a failure of the service or a fault of the request.
// ofPlan reports whether the refusal is counted by the tenant's plan.
func refusalCode(err error) (code errcode.Code, refuses, ofPlan bool) {
	if err == nil {
		return "", false, false
	}
	switch code = CodeOf(err); code {
	case CodeRateLimited, CodeCostExceedsCapacity, errcode.QuotaExceeded, errcode.CreditsExhausted,
		errcode.MeterNotInPlan, errcode.TenantSuspended:
		return code, true, true
	case CodeForbidden, CodeTooManyLimits, CodeFeatureNotInPlan:
		return code, true, false
	default:
		return code, false, false
	}
}

// countByName counts a refusal by the tenant's plan, or the units of a success by their meters.
func (g *Gate) countByName(o *outcome, code errcode.Code, refusedByPlan bool) {
	switch snapshot := g.tenants.catalog.Snapshot(); {
	case refusedByPlan:
		g.metrics.catalog.refused(snapshot, o.plan, string(code))
	case o.err != nil || o.replayed:
	case o.debit != nil:
		for i := range o.debit.Items {
			g.metrics.catalog.drawn(snapshot, o.debit.Items[i].Draws)
		}
	case o.capture != nil:
		for i := range o.capture.Items {
			g.metrics.catalog.drawn(snapshot, o.capture.Items[i].Draws)
		}
	}
}

// noteDenial records a refusal, so that its reason can be looked up later.
func (g *Gate) noteDenial(ctx context.Context, o *outcome, code errcode.Code) {
	req := o.req
	d := denial.Denial{
		At: g.now(), Tenant: req.Tenant, Code: string(code), Rule: refusingRule(o.err), Subject: req.Subject,
		Route: req.Route, RequestID: auditlog.From(ctx).RequestID,
	}
	e, ok := errors.AsType[*errcode.Error](o.err)
	for i := range req.Items {
		if len(req.Items) == 1 || ok && e.Field() == fmt.Sprintf("items[%d].meter", i) {
			d.Meter = req.Items[i].Meter
		}
	}
	if units := ledger.DenialOf(o.err); units != nil {
		d.Meter = units.Limiting.Meter
		d.Required = units.Required
		d.Available = units.Available
	}
	g.denials.Note(&d)
}

// noteShadows counts the decisions of limits in shadow mode about a request that was granted or refused.
func (g *Gate) noteShadows(o *outcome, refused bool) {
	for i := range o.limits {
		if v := &o.limits[i]; v.Shadow {
			g.denials.NoteShadow(&denial.Shadow{
				Tenant: o.req.Tenant, Rule: v.Rule, Refused: refused, RefusedBy: refusingRule(o.err),
				Denies: !v.Allowed,
			})
		}
	}
}

// refusingRule returns the limit that refused a request. If several limits refused it, refusingRule returns the limit
// with the longest wait. If no limit refused the request, it returns "".
func refusingRule(err error) string {
	if e, ok := errors.AsType[*CostExceedsCapacity](err); ok {
		return e.Violated[0]
	}
	longest := &LimitVerdict{}
	if e, ok := errors.AsType[*RateLimited](err); ok {
		longest.Rule = e.Violated[0]
		for i := range e.Verdicts {
			if v := &e.Verdicts[i]; !v.Allowed && !v.Shadow && v.RetryAfter > longest.RetryAfter {
				longest = v
			}
		}
	}
	return longest.Rule
}
