package console

import (
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// extendGrant returns the correction that gives a grant a later end.
func extendGrant() *correction {
	send := func(c *call, v *correctionView, dry bool) error {
		ends, err := v.instant("expires_at")
		if err != nil {
			return err
		}
		request := client.GrantExtensionRequest{Meter: v.get("meter"), Reason: v.get("reason"), DryRun: dry}
		if !ends.IsZero() {
			request.ExpiresAt = &ends
		}
		got, err := c.ExtendGrant(c.ctx, v.Tenant.Tenant, v.get("grant"), request, client.WithKey(v.once), client.WithMeta(&v.meta))
		if err != nil {
			return notExtended(err)
		}
		v.extended(got)
		return nil
	}
	return &correction{
		name: "extend", title: "Extend a grant", verb: "Extend", help: "Gives a grant a later end. Its id, its remaining units and its held units stay.",
		fields: []field{
			{name: "grant", label: "Grant", kind: "text", required: true},
			meterField(),
			{name: "expires_at", label: "New end", kind: "time", help: "In the tenant's zone. Empty: never."},
			reasonField(),
		},
		send: send,
	}
}

// notExtended returns an error of the API as an error with texts for people. Some titles are about the grant.
func notExtended(err error) error {
	e := client.AsError(err)
	if e == nil {
		return err
	}
	f := ofAPI(e)
	switch {
	case e.Code == client.ProblemCodePreconditionFailed:
		f.title = "This grant cannot be extended"
	case e.Code == client.ProblemCodeInvalidArgument && len(f.fields) > 0 && f.fields[0].Field == "expires_at":
		f.title = "This is not a later end"
	}
	return f
}

// extended stores the changes that an extension makes in the view.
func (v *correctionView) extended(got *client.GrantExtension) {
	end := func(t *time.Time) string { return endText(t, v.zone) }
	v.changes = []difference{
		{"End", end(&got.PreviousExpiresAt), end(got.ExpiresAt) + " (" + v.Timezone + ")"},
		v.amountChange("Left of the grant", got.Meter, got.Units, got.Units),
	}
	if got.Held > 0 {
		v.changes = append(v.changes, v.amountChange("On hold of the grant", got.Meter, got.Held, got.Held))
	}
	v.changes = append(v.changes, v.amountChange("Remaining of "+got.Meter, got.Meter, got.Remaining, got.Remaining))
	v.audit = &auditPreview{action: "grant.extend", kind: "grant", id: got.Grant, reason: v.get("reason")}
	v.notes = append(v.notes, "Among grants with the same priority, those that end sooner are used first.")
}
