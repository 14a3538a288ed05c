package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// audited reports whether an operation of this kind is recorded in the audit log if an administrator makes it.
func audited(k ledger.Kind) bool {
	switch k {
	case ledger.KindGrant, ledger.KindVoid, ledger.KindExtendGrant, ledger.KindAdjust, ledger.KindRefund:
		return true
	case ledger.KindDebit, ledger.KindHold, ledger.KindCapture, ledger.KindRelease, ledger.KindExtend:
	}
	return false
}

// linesOf returns the lines of the audit log for the calls that were decided now. Replays and refusals have no line.
func linesOf(calls []*ledger.Call) []auditlog.Line {
	var lines []auditlog.Line
	for _, c := range calls {
		if actor, wanted := c.Origin.(*auditlog.Actor); wanted && c.Err == nil && !c.Replayed {
			line := lineOf(c)
			line.Actor, line.Object.Tenant = actor, c.ID.Tenant
			lines = append(lines, line)
		}
	}
	return lines
}

// grantFacts is a grant as the API shows it.
type grantFacts struct {
	GrantID     string             `json:"grant_id"`
	Meter       string             `json:"meter"`
	Subject     string             `json:"subject,omitzero"`
	Source      ledger.Source      `json:"source"`
	Amount      int64              `json:"amount"`
	Remaining   int64              `json:"remaining"`
	Status      ledger.GrantStatus `json:"status"`
	Priority    int32              `json:"priority"`
	EffectiveAt time.Time          `json:"effective_at"`
	ExpiresAt   *time.Time         `json:"expires_at"` // nil: never
	CostBasis   string             `json:"cost_basis,omitzero"`
}

// grantState holds the fields of a grant that a void changes.
type grantState struct {
	Meter     string             `json:"meter"`
	Subject   string             `json:"subject,omitzero"`
	Remaining int64              `json:"remaining"`
	Status    ledger.GrantStatus `json:"status"`
}

// grantEnd holds the fields of a grant that an extension changes.
type grantEnd struct {
	Meter     string     `json:"meter"`
	Subject   string     `json:"subject,omitzero"`
	Remaining int64      `json:"remaining"`  // a pending grant has its whole amount here
	ExpiresAt *time.Time `json:"expires_at"` // nil: never
}

// balanceState holds the fields of a balance that an adjustment changes.
type balanceState struct {
	Meter     string `json:"meter"`
	Subject   string `json:"subject,omitzero"`
	Remaining int64  `json:"remaining"`
	Amount    int64  `json:"amount,omitzero"` // change of remaining; set only in the state after the change
}

// refundFacts has the units that a refund has returned.
type refundFacts struct {
	Operation string       `json:"operation_id"` // the refunded operation
	Items     []refundItem `json:"items"`
}

type refundItem struct {
	Meter     string `json:"meter"`
	Refunded  int64  `json:"refunded"`
	Forfeited int64  `json:"forfeited,omitzero"`
}

// lineOf returns the line of one call of an audited kind, without its actor and tenant.
func lineOf(c *ledger.Call) auditlog.Line {
	switch op := c.Op.(type) {
	case *ledger.Grant:
		g := &c.Answer.(*ledger.GrantResult).Grant
		return auditlog.Line{
			Action: "grant.create", Object: auditlog.Object{Kind: "grant", ID: g.ID}, Reason: op.Reason,
			After: grantFacts{
				GrantID: g.ID, Meter: g.Meter, Subject: g.Subject, Source: g.Source, Amount: g.Amount, Remaining: g.Remaining, Status: g.Status,
				Priority: g.Priority, EffectiveAt: g.EffectiveAt.UTC(), ExpiresAt: period.OrNil(g.ExpiresAt), CostBasis: g.CostBasis,
			},
		}
	case *ledger.GrantChange:
		v := c.Answer.(*ledger.Change)
		if op.Action == ledger.ExtendGrant {
			return auditlog.Line{
				Action: "grant.extend", Object: auditlog.Object{Kind: "grant", ID: v.Grant}, Reason: op.Reason,
				Before: grantEnd{v.Meter, v.Subject, v.Units, v.Ended}, After: grantEnd{v.Meter, v.Subject, v.Units, v.ExpiresAt},
			}
		}
		return auditlog.Line{
			Action: "grant.void", Object: auditlog.Object{Kind: "grant", ID: v.Grant}, Reason: op.Reason,
			Before: grantState{v.Meter, v.Subject, -v.Amount, v.Was}, After: grantState{v.Meter, v.Subject, 0, ledger.GrantVoided},
		}
	case *ledger.Adjust:
		a := c.Answer.(*ledger.Change)
		return auditlog.Line{
			Action: "adjustment.create", Object: auditlog.Object{Kind: "adjustment", ID: a.OperationID}, Reason: op.Reason,
			Before: balanceState{a.Meter, a.Subject, a.Before, 0}, After: balanceState{a.Meter, a.Subject, a.Remaining, a.Amount},
		}
	case *ledger.Refund:
		r := c.Answer.(*ledger.RefundResult)
		return auditlog.Line{
			Action: "refund.create", Object: auditlog.Object{Kind: "refund", ID: r.OperationID}, Reason: op.Reason,
			After: refundFacts{r.RefundOf, refundItems(r.Items)},
		}
	}
	panic("ledger: no line for operations of kind " + string(c.Kind)) // audited returns true only for the kinds above
}

func refundItems(items []ledger.RefundItem) []refundItem {
	return column(items, func(i *ledger.RefundItem) refundItem { return refundItem{i.Meter, i.Refunded, i.Forfeited} })
}

// recordRoll records that an administrator has started roll, in the transaction that stores roll.
func recordRoll(ctx context.Context, tx pgx.Tx, roll *Roll) error {
	actor := auditlog.From(ctx)
	if !actor.Admin {
		return nil
	}
	return auditlog.Record(ctx, tx, []auditlog.Line{{
		Actor: actor, Action: "roll.start", Object: auditlog.Object{Kind: "roll", ID: roll.ID},
		After: map[string]any{"as_of": roll.AsOf.UTC(), "status": roll.Status},
	}})
}
