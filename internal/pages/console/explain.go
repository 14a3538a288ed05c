package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access"
)

// explainView is the data of the page that explains whether a tenant may use an amount of a meter, now or at another
// time.
type explainView struct {
	tenant, meter, amount, subject, route, at string // as the person entered them

	when    time.Time // the instant in the tenant's zone; zero: now
	past    bool      // whether the instant is in the past
	asked   bool      // whether the form was complete
	mayAsk  bool      // whether the key has the scope use, which checks need
	problem *failure
	unit    string
	zone    *time.Location
	answer  *client.CheckAnswer // the answer of a check, for the present instant
	draws   *client.DebitAnswer // the answer of a dry run of the debit; nil if the debit is refused
	steps   []step

	allowed bool
	code    client.ProblemCode // why the request is refused
	asOf    time.Time
}

// step is one step of the decision about the request, as the page shows it.
type step struct {
	title, text string
	outcome     outcome
	meter       string // the meter from which the step takes units
	amount      int64  // the number of units that the step takes

	link, href string // the text and the path of a link to more information
}

// outcome is the effect of a step on the request.
type outcome string

const (
	passes outcome = "passes"
	takes  outcome = "takes"
	denies outcome = "denies"
	notes  outcome = "notes" // has no effect on the decision
)

// showExplain shows whether a tenant may use an amount of a meter, and why.
func showExplain(c *call) error {
	q := c.r.URL.Query()
	v := &explainView{
		tenant: strings.TrimSpace(q.Get("tenant")), meter: strings.TrimSpace(q.Get("meter")), amount: strings.TrimSpace(q.Get("amount")),
		subject: strings.TrimSpace(q.Get("subject")), route: strings.TrimSpace(q.Get("route")), at: strings.TrimSpace(q.Get("at")), mayAsk: c.key.Scopes.Has(access.Use), zone: time.UTC,
	}
	if v.tenant == "" && c.key.Tenant != "" {
		v.tenant = c.key.Tenant
	}
	if v.meter != "" && v.amount != "" && v.tenant != "" && v.mayAsk {
		v.asked = true
		if err := v.ask(c); err != nil {
			v.problem = explain(err)
		}
	}
	return c.render(http.StatusOK, explainPage(c, v))
}

// ask sends a check and then a dry run of the debit. The dry run returns the grants from which a real debit would draw
// units. If the person entered a time, ask calls askAt instead.
func (v *explainView) ask(c *call) error {
	amount, err := strconv.ParseInt(strings.ReplaceAll(v.amount, ",", ""), 10, 64)
	if err != nil {
		return &failure{status: http.StatusBadRequest, title: "The amount is not a whole number", detail: "Enter the amount in the meter's smallest unit, such as 250."}
	}
	v.unit = "units"
	if m, err := c.GetMeter(c.ctx, v.meter); err == nil {
		v.unit = m.Unit
	}
	if t, err := c.GetTenant(c.ctx, v.tenant); err == nil {
		v.zone = zoneOf(t.Timezone)
	}
	items := client.Items{{Meter: v.meter, Amount: amount}}
	if v.when, err = dayIn("at", v.at, v.zone); err != nil {
		return err
	}
	if !v.when.IsZero() {
		return v.askAt(c, items)
	}
	v.answer, err = c.Check(c.ctx, client.CheckRequest{Tenant: v.tenant, Items: items, Subject: v.subject, Route: v.route})
	if err != nil {
		return err
	}
	tried, err := c.Debit(c.ctx, client.DebitRequest{Tenant: v.tenant, Items: items, Subject: v.subject, DryRun: true})
	if err == nil {
		v.draws = tried
	} else if e := client.AsError(err); e == nil || e.Status >= http.StatusInternalServerError {
		return err
	}
	v.steps, v.allowed, v.code, v.asOf = v.waterfall(), v.answer.Allowed, v.answer.Code, v.answer.AsOf
	return nil
}

// waterfall returns the steps of the decision in the order in which the service carries them out.
func (v *explainView) waterfall() []step {
	steps := []step{v.blockStep()}
	for i := range v.answer.Limits {
		steps = append(steps, v.limitStep(&v.answer.Limits[i]))
	}
	if len(v.answer.Limits) == 0 {
		steps = append(steps, step{title: "Rate limits", text: "No rate limit applies to this request.", outcome: passes})
	}
	for i := range v.answer.Items {
		steps = append(steps, v.itemSteps(&v.answer.Items[i])...)
	}
	return steps
}

func (v *explainView) blockStep() step {
	b := v.answer.Blocked
	if b == nil {
		return step{title: "Blocks", text: "Nothing blocks the tenant" + ofSubject(v.subject) + ".", outcome: passes}
	}
	text := fmt.Sprintf("The %s %s is blocked", b.Kind, b.Value)
	if !b.ExpiresAt.IsZero() {
		text += " until " + stamp(b.ExpiresAt, v.zone)
	}
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	return step{title: "Blocks", text: sentence(text), outcome: denies}
}

func ofSubject(subject string) string {
	if subject == "" {
		return ""
	}
	return " or the subject " + subject
}

func (v *explainView) limitStep(l *client.LimitVerdict) step {
	s := step{title: "Rate limit " + l.Rule, outcome: passes}
	s.text = fmt.Sprintf("%s of %s requests are left (%s).", num(l.Remaining), num(l.Limit), words(l.Kind))
	switch {
	case l.Shadow && l.WouldDeny != nil && *l.WouldDeny:
		s.outcome = notes
		s.text = "In shadow mode: it would deny this request, but denies nothing. " + s.text
	case l.Shadow:
		s.outcome = notes
		s.text = "In shadow mode: it denies nothing. " + s.text
	case !l.Allowed:
		s.outcome = denies
		if l.RetryAfterMs != nil {
			s.text += " It admits this request after " + (time.Duration(*l.RetryAfterMs) * time.Millisecond).String() + "."
		} else {
			s.text += " Waiting does not help: the request costs more than the limit ever holds."
		}
	}
	if l.Degraded {
		s.text += " Redis is down, so this instance decides alone."
	}
	return s
}

// itemSteps returns the steps for one item: the grants that would pay for it, or the missing units.
func (v *explainView) itemSteps(item *client.CheckedItem) []step {
	if v.draws == nil {
		text := fmt.Sprintf("%s %s are needed, and %s of %s are left.", num(item.Required), v.unit, num(item.Remaining), num(item.Limit))
		switch {
		case item.Code == client.ProblemCodeMeterNotInPlan:
			text = "The tenant's plan does not have this meter."
		case v.answer.Code == client.ProblemCodeTenantSuspended:
			text = "The tenant is suspended."
		case !item.WouldSucceedAt.IsZero():
			text += " It would succeed at " + stamp(item.WouldSucceedAt, v.zone) + " if nothing else is used until then."
		default:
			text += fmt.Sprintf(" At most %s %s would be allowed now.", num(item.MaxAllowedNow), v.unit)
		}
		return []step{{title: "Balance of " + item.Meter, text: text, outcome: denies}}
	}
	return v.drawSteps()
}

// drawSteps returns a step for each grant from which the debit draws units.
func (v *explainView) drawSteps() []step {
	var steps []step
	for _, d := range v.draws.Items {
		for n, draw := range d.Draws {
			s := step{title: ordinal(n) + " grant", outcome: takes, amount: draw.Amount, meter: draw.Meter}
			switch {
			case draw.Source == client.SourceOverage:
				s.title, s.text = "Overage", "Nothing is left, and the plan permits overage: this is used without a grant."
			case draw.Meter != d.Meter:
				s.title, s.text = "Overflow to "+draw.Meter, fmt.Sprintf("%s is used up, and its plan lets %s pay, from grant %s (%s).", d.Meter, draw.Meter, draw.Grant, sourceText(draw.Source))
			default:
				s.text = fmt.Sprintf("From grant %s (%s).", draw.Grant, sourceText(draw.Source))
			}
			steps = append(steps, s)
		}
		if d.Overflow.Units > 0 {
			steps = append(steps, v.roundingStep(&d))
		}
		steps = append(steps, step{title: "Afterwards", text: fmt.Sprintf("%s %s of %s would remain.", num(d.Remaining), v.unit, d.Meter), outcome: notes})
	}
	return steps
}

// roundingStep returns a step that shows the price of units that another meter paid for, and how the cost was
// rounded.
func (v *explainView) roundingStep(d *client.DebitedItem) step {
	o := &d.Overflow
	return step{title: "Price of the overflow", outcome: notes, text: fmt.Sprintf("%s %s of %s at %s %s for %s cost exactly %s, rounded %s to %s.",
		num(o.Units), v.unit, d.Meter, num(o.Price.Units), o.Meter, num(o.Price.Per), o.Exact, o.Rounding, num(o.Cost))}
}

// ordinal returns a word for the position of a grant in the burn order, for example First.
func ordinal(n int) string {
	if words := []string{"First", "Second", "Third"}; n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n+1) + "th"
}

// verdict returns a sentence that says what would happen.
func (v *explainView) verdict() string {
	if !v.when.IsZero() {
		return v.verdictAt()
	}
	what := fmt.Sprintf("%s %s of %s", v.amount, v.unit, v.meter)
	switch {
	case v.answer.Allowed:
		return "Allowed: " + v.tenant + " could use " + what + " now."
	case v.answer.Code == client.ProblemCodeRateLimited:
		return "Denied: a rate limit refuses the request now (429 rate_limited). The balance was not the reason."
	case v.answer.Code == client.ProblemCodeCreditsExhausted:
		return "Denied: there are not enough units of " + v.meter + " (402 credits_exhausted). A top-up helps; waiting does not."
	case v.answer.Code == client.ProblemCodeQuotaExceeded:
		return "Denied: there are not enough units of " + v.meter + " now (429 quota_exceeded). Waiting helps, and so does a top-up."
	case v.answer.Code == client.ProblemCodeTenantSuspended:
		return "Denied: the tenant is suspended (403 tenant_suspended)."
	case v.answer.Blocked != nil:
		return "Denied: a block forbids it (403 " + string(v.answer.Code) + ")."
	default:
		return "Denied: " + string(v.answer.Code) + "."
	}
}
