package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// extendGrant is a correction in two requests, because a grant is immutable: what is left of it is taken back, and granted again with another end. Both
// have keys of the form, and the second one has the amount that the first one says, so a form that is sent again completes what it began.
func extendGrant() *correction {
	return &correction{
		name: "extend", title: "Extend a grant", verb: "Extend", help: "Gives what is left of a top-up or promo a later end. The grant itself never changes: it is voided, and a new one has the rest.",
		fields: []field{
			{name: "grant", label: "Grant", kind: "text", required: true},
			meterField(),
			{name: "expires_at", label: "New end", kind: "time", help: "In the tenant's zone. Empty: never."},
			{name: "grant_id", label: "Id of the new grant", kind: "text", help: "Empty: made for you."},
			reasonField(),
			{name: "source", kind: "hidden"},
			{name: "priority", kind: "hidden"},
			{name: "cost_basis", kind: "hidden"},
		},
		try: func(c *call, v *correctionView) error { return tryExtension(c, v) },
		do:  func(c *call, v *correctionView) error { return extend(c, v) },
	}
}

// keys of the two requests.
func (v *correctionView) voidKey() client.Option  { return client.WithKey(v.once + "-void") }
func (v *correctionView) grantKey() client.Option { return client.WithKey(v.once) }

// voidRequest takes back what is left.
func (v *correctionView) voidRequest(dry bool) client.VoidRequest {
	return client.VoidRequest{Meter: v.get("meter"), Reason: v.get("reason"), DryRun: dry}
}

// renewal grants an amount again.
func (v *correctionView) renewal(amount int64, ends time.Time, dry bool) client.GrantRequest {
	var priority *int32
	if n, err := strconv.ParseInt(v.get("priority"), 10, 32); err == nil {
		priority = new(int32(n))
	}
	return client.GrantRequest{
		Priority: priority, CostBasis: v.get("cost_basis"),
		Meter: v.get("meter"), Amount: amount, Source: client.GrantRequestSource(v.get("source")), ExpiresAt: ends, GrantID: cmp.Or(v.get("grant_id"), v.once), Reason: v.get("reason"), DryRun: dry,
	}
}

// openGrant returns the grant of the form, if something of it is left.
func (v *correctionView) openGrant(c *call) (*client.Grant, error) {
	b, err := c.GetBalance(c.ctx, v.Tenant.Tenant, v.get("meter"), client.GetBalanceQuery{})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(b.Grants, func(g client.Grant) bool { return g.GrantID == v.get("grant") })
	if i < 0 {
		return nil, nil //nolint:nilnil // it is none of those that burn
	}
	return &b.Grants[i], nil
}

// tryExtension says what the form would change.
func tryExtension(c *call, v *correctionView) error {
	ends, err := v.instant("expires_at")
	if err != nil {
		return err
	}
	g, err := v.openGrant(c)
	if err != nil {
		return err
	}
	if g == nil {
		return &failure{status: http.StatusNotFound, title: "There is no such grant", detail: "Nothing was changed. No open grant of this meter has this id, or nothing of it is left."}
	}
	switch g.Source {
	case client.SourceTopup, client.SourcePromo:
	default:
		return &failure{
			status: http.StatusUnprocessableEntity, title: "This grant cannot be extended", detail: "Nothing was changed. It came from " + sourceText(g.Source) + ", which has its own ends; top-ups and promos can be extended. Top up what is missing.",
		}
	}
	if g.ExpiresAt == nil || !ends.IsZero() && !ends.After(*g.ExpiresAt) {
		return &failure{
			status: http.StatusUnprocessableEntity, title: "This is no later end", detail: "Nothing was changed. The grant ends " + endText(g.ExpiresAt, v.zone) + " (" + v.Timezone + ").",
			fields: []client.FieldError{{Field: "expires_at", Message: "must be later, or empty for a grant that ends"}},
		}
	}
	v.given["source"], v.given["priority"], v.given["cost_basis"] = []string{string(g.Source)}, []string{formatInt(int64(g.Priority))}, []string{g.CostBasis}
	taken, err := c.VoidGrant(c.ctx, v.Tenant.Tenant, g.GrantID, v.voidRequest(true), v.voidKey())
	if err != nil {
		return err
	}
	if _, err := c.Grant(c.ctx, v.Tenant.Tenant, v.renewal(-taken.Amount, ends, true), v.grantKey()); err != nil {
		return err
	}
	v.extended(taken, endText(g.ExpiresAt, v.zone), ends)
	v.notes = append(v.notes, "A request between the two steps, which take some milliseconds, may find less.")
	if g.Amount != g.Remaining {
		v.notes = append(v.notes, "What was used stays with the grant that is voided; what is on hold stays on hold there.")
	}
	return nil
}

// extended describes what an extension changes.
func (v *correctionView) extended(taken *client.ChangeAnswer, ended string, ends time.Time) {
	to := &ends
	if ends.IsZero() {
		to = nil
	}
	unit := " " + v.unit(taken.Meter)
	v.changes = []difference{
		{"End", ended, endText(to, v.zone) + " (" + v.Timezone + ")"},
		{"Grant", v.get("grant"), cmp.Or(v.get("grant_id"), v.once)},
		{"Units with the new end", num(0) + unit, num(-taken.Amount) + unit},
		v.amountChange("Remaining of "+taken.Meter, taken.Meter, taken.Before, taken.Before),
	}
	v.audit = &auditPreview{action: "grant.create", kind: "grant", id: cmp.Or(v.get("grant_id"), v.once), reason: v.get("reason")}
	v.notes = append(v.notes, "There are two lines: grant.void of "+v.get("grant")+", and this one.")
}

// extend makes the extension, or completes it.
func extend(c *call, v *correctionView) error {
	ends, err := v.instant("expires_at")
	if err != nil {
		return err
	}
	g, err := v.openGrant(c)
	if err != nil {
		return err
	}
	ended := "as it was"
	if g != nil { // nothing was done yet: what cannot be granted again is not taken
		if err := tryExtension(c, v); err != nil {
			return err
		}
		ended = endText(g.ExpiresAt, v.zone)
		v.notes = nil
	}
	taken, err := c.VoidGrant(c.ctx, v.Tenant.Tenant, v.get("grant"), v.voidRequest(false), v.voidKey())
	if err != nil {
		return err
	}
	var m client.Meta
	if _, err := c.Grant(c.ctx, v.Tenant.Tenant, v.renewal(-taken.Amount, ends, false), v.grantKey(), client.WithMeta(&m)); err != nil {
		cause := explain(err)
		return &failure{
			status: cause.status, title: "The grant was taken back, and is not granted again yet", half: true, fields: cause.fields, id: cause.id,
			detail: fmt.Sprintf("%s %s of %s are missing: %s Send the same form again: it grants them, and takes nothing twice.", num(-taken.Amount), v.unit(taken.Meter), v.get("meter"), cause.detail),
		}
	}
	v.extended(taken, ended, ends)
	v.written(c, &m)
	return nil
}
