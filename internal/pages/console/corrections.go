package console

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

func meterField() field {
	return field{name: "meter", label: "Meter", kind: "text", required: true}
}

func reasonField() field {
	return field{name: "reason", label: "Reason", kind: "area", required: true, help: "At most 500 bytes. It is kept in the audit log for good: name no person in it."}
}

func topUp() *correction {
	send := func(c *call, v *correctionView, dry bool) error {
		amount, err := v.integer("amount")
		if err != nil {
			return err
		}
		ends, err := v.instant("expires_at")
		if err != nil {
			return err
		}
		meter := v.get("meter")
		before, err := c.GetBalance(c.ctx, v.Tenant.Tenant, meter, client.GetBalanceQuery{})
		if e := client.AsError(err); e != nil && e.Status != http.StatusNotFound && e.Code != client.ProblemCodeMeterNotInPlan {
			return err
		}
		got, err := c.Grant(c.ctx, v.Tenant.Tenant, client.GrantRequest{
			Meter: meter, Amount: amount, Source: client.GrantRequestSource(cmp.Or(v.get("source"), "topup")), ExpiresAt: ends, GrantID: v.get("grant_id"), Reason: v.get("reason"), DryRun: dry,
		}, client.WithKey(v.once), client.WithMeta(&v.meta))
		if err != nil {
			return err
		}
		was := got.Balance.Remaining - got.Amount
		if before != nil && !v.meta.Replayed {
			was = before.Remaining
		}
		v.changes = []difference{v.amountChange("Remaining of "+meter, meter, was, got.Balance.Remaining), {"Ends", "", v.ends(got.ExpiresAt)}}
		v.audit = &auditPreview{action: "grant.create", kind: "grant", id: got.GrantID, reason: v.get("reason")}
		return nil
	}
	return &correction{
		name: "top-up", title: "Top up", verb: "Top up", help: "Adds units to a meter. They are used after the plan's allowance.",
		fields: []field{
			meterField(),
			{name: "amount", label: "Amount", kind: "number", required: true, help: "In the meter's smallest unit."},
			{name: "source", label: "Source", kind: "choice", choices: []string{"topup", "promo"}, help: "topup: paid, used last. promo: a gift, used before paid units but after the plan's allowance."},
			{name: "expires_at", label: "Ends", kind: "time", help: "In the tenant's zone. Empty: never."},
			{name: "grant_id", label: "Id of the grant", kind: "text", help: "For example the invoice number. Empty: chosen for you."},
			reasonField(),
		},
		send: send,
	}
}

func adjust() *correction {
	send := func(c *call, v *correctionView, dry bool) error {
		amount, err := v.integer("amount")
		if err != nil {
			return err
		}
		got, err := c.Adjust(c.ctx, v.Tenant.Tenant, client.AdjustmentRequest{Meter: v.get("meter"), Amount: amount, Reason: v.get("reason"), DryRun: dry}, client.WithKey(v.once), client.WithMeta(&v.meta))
		if err != nil {
			return err
		}
		v.changed(got, "adjustment.create", "adjustment", cmp.Or(got.OperationID, v.once), dry)
		return nil
	}
	return &correction{
		name: "adjust", title: "Adjust", verb: "Adjust", help: "Corrects the remaining units of a meter, up or down. The statement shows it as a correction.",
		fields: []field{meterField(), {name: "amount", label: "By", kind: "number", required: true, help: "In the meter's smallest unit: 50 adds, -50 removes."}, reasonField()},
		send:   send,
	}
}

// changed stores the result of a void or an adjustment in the view: the changes and the line of the audit log.
func (v *correctionView) changed(got *client.ChangeAnswer, action, kind, id string, dry bool) {
	v.changes = []difference{v.amountChange("Remaining of "+got.Meter, got.Meter, got.Before, got.Remaining)}
	v.audit = &auditPreview{action: action, kind: kind, id: id, reason: v.get("reason")}
	if dry {
		v.audit.id = v.get("grant")
		if kind == "adjustment" {
			v.audit.id = v.once
		}
	}
}

func voidGrant() *correction {
	send := func(c *call, v *correctionView, dry bool) error {
		got, err := c.VoidGrant(c.ctx, v.Tenant.Tenant, v.get("grant"), client.VoidRequest{Meter: v.get("meter"), Reason: v.get("reason"), DryRun: dry}, client.WithKey(v.once), client.WithMeta(&v.meta))
		if err != nil {
			return err
		}
		v.changed(got, "grant.void", "grant", v.get("grant"), dry)
		v.notes = append(v.notes, fmt.Sprintf("%s %s of the grant are taken back. Used units stay used.", num(-got.Amount), v.unit(got.Meter)))
		return nil
	}
	return &correction{
		name: "void", title: "Void a grant", verb: "Void", danger: true, help: "Takes back what remains of a grant.",
		fields: []field{{name: "grant", label: "Grant", kind: "text", required: true}, {name: "meter", label: "Meter", kind: "text", help: "Required if grants of several meters have this id."}, reasonField()},
		send:   send,
	}
}

func refund() *correction {
	send := func(c *call, v *correctionView, dry bool) error {
		request := client.RefundRequest{Tenant: v.Tenant.Tenant, OperationID: v.get("operation"), Meter: v.get("meter"), Reason: v.get("reason"), DryRun: dry}
		var err error
		if v.get("amount") != "" {
			if request.Amount, err = v.integer("amount"); err != nil {
				return err
			}
		}
		if request.At, err = v.instant("at"); err != nil {
			return err
		}
		got, err := c.Refund(c.ctx, request, client.WithKey(v.once), client.WithMeta(&v.meta))
		if err != nil {
			return err
		}
		for _, item := range got.Items {
			v.changes = append(v.changes, v.amountChange("Remaining of "+item.Meter, item.Meter, item.Remaining-item.Refunded+item.Forfeited, item.Remaining))
			if item.Forfeited > 0 {
				v.notes = append(v.notes, fmt.Sprintf("%s %s go to grants that have ended, and are forfeited.", num(item.Forfeited), v.unit(item.Meter)))
			}
		}
		v.audit = &auditPreview{action: "refund.create", kind: "refund", id: v.once, reason: v.get("reason")}
		return nil
	}
	return &correction{
		name: "refund", title: "Refund", verb: "Refund", help: "Returns the units that an operation used to the grants that paid for it.",
		fields: []field{
			{name: "operation", label: "Operation", kind: "text", required: true, help: "Its id, as the journal shows it."},
			{name: "amount", label: "Amount", kind: "number", help: "Empty: all that is left to refund."},
			{name: "meter", label: "Meter", kind: "text", help: "Required if the operation used several meters."},
			{name: "at", label: "Time of the operation, at the latest", kind: "time", help: "Only if a later operation has the same id. In the tenant's zone."},
			reasonField(),
		},
		send: send,
	}
}

// patch changes the tenant, unless the tenant has changed since the form was opened. The function `done` reports
// whether the tenant already has the new values. If so, the form was sent before, and patch returns no error.
func patch(c *call, v *correctionView, p client.TenantPatch, done func(*client.Tenant) bool) error {
	p.Reason = v.get("reason")
	options := []client.Option{client.WithMeta(&v.meta)}
	if version := v.get("version"); version != "" {
		options = append(options, client.WithIfMatch(`"`+version+`"`))
	}
	got, err := c.PatchTenant(c.ctx, v.Tenant.Tenant, p, options...)
	if e := client.AsError(err); e != nil && e.Code == client.ProblemCodePreconditionFailed && !p.DryRun && done(v.Tenant) {
		v.replayed = true
		v.changes = []difference{{"Plan", "", v.Plan}, {"Status", "", string(v.Status)}}
		return nil
	}
	if err != nil {
		return err
	}
	if got.Before.Plan != got.Plan || p.Plan != "" {
		v.changes = append(v.changes, difference{"Plan", got.Before.Plan, planAfter(got)})
	}
	if p.Status != "" {
		v.changes = append(v.changes, difference{"Status", string(got.Before.Status), string(got.Status)})
	}
	v.audit = &auditPreview{action: "tenant.patch", kind: "tenant", id: v.Tenant.Tenant, reason: p.Reason}
	return nil
}

// planAfter returns the plan that the tenant has after a change, also if the change waits.
func planAfter(got *client.TenantChange) string {
	if got.Pending != nil && got.Before.Pending == nil {
		return got.Pending.Plan
	}
	return got.Plan
}

// hasPlan reports whether a plan is in force for the tenant, or is to come.
func hasPlan(t *client.Tenant, plan string) bool {
	return t.Plan == plan || t.Pending != nil && t.Pending.Plan == plan
}

// version puts the version of the tenant into the form. The API refuses the change if the tenant no longer
// has this version.
func version(_ *call, v *correctionView) error {
	v.given = v.given.without("version")
	v.given["version"] = []string{formatInt(v.Version)}
	return nil
}

func versionField() field { return field{name: "version", kind: "hidden"} }

func changePlan() *correction {
	send := func(c *call, v *correctionView, dry bool) error {
		apply := client.TenantPatchApply(cmp.Or(v.get("apply"), "next_period"))
		request := client.TenantPatch{Plan: v.get("plan"), Apply: apply, DryRun: dry}
		if apply == client.TenantPatchApplyNow {
			prorate := v.get("prorate") == "yes"
			request.Prorate, request.Usage = &prorate, client.TenantPatchUsage(cmp.Or(v.get("usage"), "carry"))
		}
		if err := patch(c, v, request, func(t *client.Tenant) bool { return hasPlan(t, request.Plan) }); err != nil {
			return err
		}
		when := "At the end of the billing period. Until then the current plan stays in force."
		if apply == client.TenantPatchApplyNow {
			when = "Now: open periods continue with the new plan's amounts. Paid grants do not change."
		}
		v.notes = append(v.notes, when)
		return nil
	}
	return &correction{
		name: "plan", title: "Change the plan", verb: "Change the plan", help: "Paid grants never change.",
		fields: []field{
			{name: "plan", label: "New plan", kind: "text", required: true},
			{name: "apply", label: "When", kind: "choice", choices: []string{"next_period", "now"}},
			{name: "prorate", label: "Prorate (only for a change now)", kind: "choice", choices: []string{"no", "yes"}},
			{
				name: "usage", label: "Use so far (only for a change now)", kind: "choice", choices: []string{"carry", "reset", "add"},
				help: "carry: use so far counts against the new allowance. reset: it does not count. add: it does not count, and the rest of the old allowance stays.",
			},
			reasonField(), versionField(),
		},
		fill: version, send: send,
	}
}

// setStatus returns a correction that changes the tenant's status.
func setStatus(name, title, help string, to client.TenantStatus, danger bool) *correction {
	send := func(c *call, v *correctionView, dry bool) error {
		return patch(c, v, client.TenantPatch{Status: to, DryRun: dry}, func(t *client.Tenant) bool { return t.Status == to })
	}
	return &correction{
		name: name, title: title, verb: title, help: help, danger: danger, fields: []field{reasonField(), versionField()}, fill: version,
		send: send,
	}
}

func suspend() *correction {
	return setStatus("suspend", "Suspend", "Every check and use of the tenant is refused with 403 tenant_suspended until you resume it. Periods continue.", client.TenantStatusSuspended, true)
}

func resume() *correction {
	return setStatus("resume", "Resume", "Ends a suspension.", client.TenantStatusActive, false)
}

func blockTenant() *correction {
	send := func(c *call, v *correctionView, dry bool) error {
		ends, err := v.instant("expires_at")
		if err != nil {
			return err
		}
		request := client.BlockRequest{Action: client.BlockActionBlock, Reason: v.get("reason"), ExpiresAt: ends}
		kind, value := string(client.BlockKindTenant), v.Tenant.Tenant
		if subject := v.get("subject"); subject != "" {
			kind, value, request.Tenant = string(client.BlockKindSubject), subject, v.Tenant.Tenant
		}
		before := "not blocked"
		found, err := c.GetBlock(c.ctx, kind, value, client.GetBlockQuery{Tenant: request.Tenant})
		switch e := client.AsError(err); {
		case err == nil:
			before = string(found.Action) + ", " + untilText(&found.ExpiresAt, v)
		case e == nil || e.Status != http.StatusNotFound:
			return err
		}
		v.changes = []difference{{kind + " " + value, before, "block, " + untilText(&ends, v)}}
		v.audit = &auditPreview{action: "block.put", kind: "block", id: kind + "/" + value, reason: request.Reason}
		if dry {
			return nil
		}
		_, err = c.PutBlock(c.ctx, kind, value, request, client.WithMeta(&v.meta))
		return err
	}
	return &correction{
		name: "block", title: "Block", verb: "Block", danger: true, help: "Refuses every request of the tenant, or of one of its subjects, on all instances within a second.",
		fields: []field{
			{name: "subject", label: "Subject", kind: "text", help: "Empty: the whole tenant."},
			{name: "expires_at", label: "Ends", kind: "time", help: "In the tenant's zone. Empty: until someone deletes the block."},
			{name: "reason", label: "Reason", kind: "area", required: true, help: "At most 500 bytes. Refused clients see it."},
		},
		send: send,
	}
}

// ends returns a text with the end of a grant and with the tenant's zone.
func (v *correctionView) ends(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return short(*t, v.zone) + " (" + v.Timezone + ")"
}

// untilText returns a text that says when a block ends.
func untilText(t *time.Time, v *correctionView) string {
	if t.IsZero() {
		return "without an end"
	}
	return "until " + stamp(*t, v.zone)
}
