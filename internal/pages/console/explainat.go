package console

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// notForeseen is the note about limits and blocks in every explanation of a future instant.
const notForeseen = "Levels of limits at that time are not known. Blocks and a suspension are those of now."

// askAt explains the decision at the given instant. For a future instant it sends a dry run of a debit. For a past
// instant it reads stored data.
func (v *explainView) askAt(c *call, items client.Items) error {
	tried, err := c.Debit(c.ctx, client.DebitRequest{Tenant: v.tenant, Items: items, Subject: v.subject, DryRun: true, At: v.when})
	if err == nil {
		v.draws, v.allowed, v.asOf = tried, true, tried.AsOf
		v.steps = append([]step{{title: "Rate limits", text: notForeseen, outcome: notes}}, v.drawSteps()...)
		return nil
	}
	e := client.AsError(err)
	switch {
	case e == nil || e.Status >= http.StatusInternalServerError || e.Problem == nil || e.Status == http.StatusNotFound:
		return err
	case e.Code == client.ProblemCodeInvalidArgument:
		if !names(e, "at") {
			return err
		}
		past := v.askPast(c, items[0].Amount) // the ledger's clock decides whether the instant is past
		if e := client.AsError(past); e != nil && names(e, "as_of") {
			return err
		}
		return past
	}
	v.asOf, v.code = v.when, e.Code
	v.steps = []step{{title: "Rate limits", text: notForeseen, outcome: notes}, {title: "Balance of " + v.meter, text: sentence(e.Detail), outcome: denies}}
	return nil
}

// names reports whether an error of the API lists this field as wrong.
func names(e *client.Error, field string) bool {
	return e.Problem != nil && slices.ContainsFunc(e.Problem.Errors, func(f client.FieldError) bool { return f.Field == field })
}

// askPast reads the remaining units at a past instant, and the number of refusals in the minute of this instant.
func (v *explainView) askPast(c *call, amount int64) error {
	v.past, v.asOf, v.allowed = true, v.when, true
	subjects := []string{""}
	if v.subject != "" {
		subjects = append(subjects, v.subject)
	}
	for _, subject := range subjects {
		b, err := c.GetBalance(c.ctx, v.tenant, v.meter, client.GetBalanceQuery{Subject: subject, AsOf: v.when})
		if e := client.AsError(err); subject != "" && e != nil && e.Status == http.StatusNotFound {
			continue // the subject had no balance and therefore no cap
		}
		if err != nil {
			return err
		}
		s := step{title: "Balance of " + v.meter, outcome: passes, text: fmt.Sprintf("%s of %s %s were left, and %s were on hold.", num(b.Remaining), num(b.Limit), v.unit, num(b.Held))}
		if subject != "" {
			s.title = "Cap of " + subject
		}
		if b.Remaining < amount {
			s.outcome, v.allowed, v.code = denies, false, client.ProblemCodeQuotaExceeded
			s.text += " A request could still pass if another meter paid for it or the plan permitted overage."
		}
		v.steps = append(v.steps, s)
	}
	minute := v.when.Truncate(time.Minute)
	list, err := c.ListDenials(c.ctx, v.tenant, client.ListDenialsQuery{From: minute, To: minute.Add(time.Minute), Limit: 1})
	if err != nil {
		return err
	}
	n := int64(0)
	for i := range list.Counts {
		n += list.Counts[i].N
	}
	v.steps = append(v.steps, step{
		title: "Refusals", outcome: notes, text: fmt.Sprintf("Refused in the minute of %s: %s.", short(minute, v.zone), num(n)), link: "Read why",
		href: refusalsAt(v.tenant, minute, v.zone),
	}, step{title: "Rate limits", outcome: notes, text: "Past levels of limits are not stored. A refusal names the limit that denied it."})
	return nil
}

// verdictAt returns a sentence that says what would happen, or would have happened, at the given instant.
func (v *explainView) verdictAt() string {
	what, when := fmt.Sprintf("%s %s of %s", v.amount, v.unit, v.meter), stamp(v.when, v.zone)
	switch {
	case v.past && v.allowed:
		return "Enough was left: the balance of " + v.tenant + " covered " + what + " at " + when + "."
	case v.past:
		return "Not enough was left: the balance of " + v.tenant + " did not cover " + what + " at " + when + "."
	case v.allowed:
		return "Allowed: " + v.tenant + " could use " + what + " at " + when + ", if nothing is used until then."
	default:
		return "Denied: " + v.tenant + " could not use " + what + " at " + when + " (" + string(v.code) + "), even if nothing is used until then."
	}
}
