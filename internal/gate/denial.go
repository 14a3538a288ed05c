package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/report/denial"
)

// refused counts the refusal of a request of a tenant on plan, and notes it for whoever asks why. Other errors, and nil, do not count.
func (g *Gate) refused(ctx context.Context, plan string, req *Request, err error) {
	if err == nil {
		return
	}
	code, refuses, ofPlan := refusalCode(err)
	switch {
	case !refuses:
		return
	case ofPlan:
		g.business.Refused(g.tenants.catalog.Snapshot(), plan, string(code))
	}
	d := denial.Denial{
		At: g.now(), Tenant: req.Tenant, Code: string(code), Rule: refusingRule(err), Subject: req.Subject, Route: req.Route,
		RequestID: auditlog.From(ctx).RequestID,
	}
	e, ok := errors.AsType[*ledger.Error](err)
	for i := range req.Items {
		if len(req.Items) == 1 || ok && e.Field == fmt.Sprintf("items[%d].meter", i) {
			d.Meter = req.Items[i].Meter
		}
	}
	if ok && e.Denial != nil {
		d.Meter, d.Required, d.Available = e.Denial.Limiting.Meter, e.Denial.Required, e.Denial.Available
	}
	g.denials.Note(&d)
}

// refusalCode returns the code of err, and whether it refuses a request for what the tenant's plan gives. All others are about the request or the service.
func refusalCode(err error) (code ledger.Code, refuses, ofPlan bool) {
	if err == nil {
		return "", false, false
	}
	switch code = CodeOf(err); code {
	case CodeRateLimited, CodeCostExceedsCapacity, ledger.CodeQuotaExceeded, ledger.CodeCreditsExhausted, ledger.CodeMeterNotInPlan, ledger.CodeTenantSuspended:
		return code, true, true
	default:
		return code, code == CodeForbidden || code == CodeTooManyLimits, false
	}
}

// shadowed counts what limits in shadow mode say about a request that was granted, or refused with err.
func (g *Gate) shadowed(req *Request, verdicts []LimitVerdict, err error) {
	for i := range verdicts {
		if v := &verdicts[i]; v.Shadow && !req.DryRun {
			if _, refuses, _ := refusalCode(err); refuses || err == nil {
				g.denials.NoteShadow(&denial.Shadow{Tenant: req.Tenant, Rule: v.Rule, Refused: refuses, RefusedBy: refusingRule(err), Denies: !v.Allowed})
			}
		}
	}
}

// refusingRule returns the limit that refused a request, of several the one that does so the longest; empty: no limit did.
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

// debited counts a debit that was decided, or its refusal.
func (g *Gate) debited(ctx context.Context, plan string, req *Request, result *ledger.DebitResult, err error) {
	if req.DryRun {
		return
	}
	g.refused(ctx, plan, req, err)
	if err != nil || result == nil || result.Replayed {
		return
	}
	for i := range result.Items {
		g.business.Drawn(g.tenants.catalog.Snapshot(), result.Items[i].Draws)
	}
}

// captured counts a capture that was decided, or its refusal. Other changes of holds draw nothing.
func (g *Gate) captured(ctx context.Context, plan string, h *ledger.HoldChange, result *ledger.HoldResult, err error) {
	g.refused(ctx, plan, &Request{Tenant: h.Tenant, Items: h.Items}, err)
	if err != nil || result.Replayed || h.Action != ledger.ActionCapture {
		return
	}
	for i := range result.Items {
		g.business.Drawn(g.tenants.catalog.Snapshot(), result.Items[i].Draws)
	}
}
