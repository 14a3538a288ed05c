package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

type explainCmd struct {
	Connection
	Tenant  string  `arg:"" help:"The tenant's id."`
	Meter   string  `arg:"" help:"The meter."`
	Amount  int64   `arg:"" help:"How many units."`
	Subject string  `placeholder:"SUBJECT" help:"The subject that would use them."`
	Route   string  `placeholder:"ROUTE" help:"The route, for limits per route."`
	Method  string  `placeholder:"METHOD" help:"The method, for limits that name one."`
	IP      string  `name:"ip" placeholder:"ADDRESS" help:"The address of the client, for limits per ip and for blocks."`
	At      instant `placeholder:"TIME" help:"A time (RFC 3339) or a day, at most 400 days ahead. The answer is for this time, if nothing is used until then, and leaves out limits and blocks."`
}

// Run prints whether the tenant may use the units now. A denial is a valid answer, so the exit status is 0.
func (c *explainCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	if c.At.given() {
		return c.simulateAt(ctx, io, s)
	}
	newest := int64(0)
	a, err := s.Check(ctx, client.CheckRequest{
		Tenant: c.Tenant, Items: []client.Item{{Meter: c.Meter, Amount: c.Amount}}, Subject: c.Subject, Route: c.Route, Method: c.Method, IP: c.IP, MaxStaleMs: &newest,
	})
	if err != nil {
		return err
	}
	var tried *client.DebitAnswer
	if a.Allowed {
		if tried, err = c.try(ctx, s); err != nil {
			return err
		}
	}
	if c.JSON {
		return io.json(explanation{a, tried})
	}
	if a.Allowed {
		io.printf("%s: %s may use %s %s now.\n", io.paint(green, "allowed"), c.who(), amount(c.Amount), c.Meter)
	} else {
		io.printf("%s: %s may not use %s %s now: %s.\n", io.paint(red, "denied"), c.who(), amount(c.Amount), c.Meter, because(a))
	}
	for _, item := range a.Items {
		c.printItem(io, &item)
	}
	if tried != nil {
		for i := range tried.Items {
			printDraws(io, &tried.Items[i])
		}
	}
	for i := range a.Limits {
		printVerdict(io, &a.Limits[i])
	}
	if a.Degraded {
		io.printf("  PostgreSQL or Redis is down: balances may be older, or one instance decided the limits alone.\n")
	}
	return nil
}

// simulateAt prints the answer that a debit would get at the later time c.At.
func (c *explainCmd) simulateAt(ctx context.Context, io *IO, s *client.Client) error {
	at, err := c.At.resolve(ctx, s)
	if err != nil {
		return err
	}
	tried, err := s.Debit(ctx, client.DebitRequest{Tenant: c.Tenant, Items: []client.Item{{Meter: c.Meter, Amount: c.Amount}}, Subject: c.Subject, DryRun: true, At: at})
	when := at.UTC().Format(time.RFC3339)
	e := client.AsError(err)
	switch {
	case err == nil && c.JSON:
		return io.json(tried)
	case err == nil:
		io.printf("%s: %s could use %s %s at %s, if nothing is used until then.\n", io.paint(green, "allowed"), c.who(), amount(c.Amount), c.Meter, when)
		for i := range tried.Items {
			printDraws(io, &tried.Items[i])
			io.printf("  %s %s would remain.\n", amount(tried.Items[i].Remaining), tried.Items[i].Meter)
		}
		return nil
	case e == nil || e.Problem == nil || !slices.Contains([]client.ProblemCode{client.ProblemCodeQuotaExceeded, client.ProblemCodeCreditsExhausted}, e.Code):
		return err
	case c.JSON:
		return io.json(e.Problem)
	}
	io.printf("%s: %s could not use %s %s at %s, even if nothing is used until then: %s (%s).\n", io.paint(red, "denied"), c.who(), amount(c.Amount), c.Meter, when, e.Detail, e.Code)
	return nil
}

// explanation is the answer to a check. If the check allows the use, it also contains the answer to a dry run of the
// debit.
type explanation struct {
	*client.CheckAnswer

	Debit *client.DebitAnswer `json:"debit,omitempty"`
}

// try makes a dry run of the debit. It returns nil if the debit would be refused: units may have been used after the
// check.
func (c *explainCmd) try(ctx context.Context, s *client.Client) (*client.DebitAnswer, error) {
	tried, err := s.Debit(ctx, client.DebitRequest{Tenant: c.Tenant, Items: []client.Item{{Meter: c.Meter, Amount: c.Amount}}, Subject: c.Subject, DryRun: true})
	if e := client.AsError(err); e != nil && e.Status < http.StatusInternalServerError {
		return nil, nil //nolint:nilnil // the answer to the check is enough
	}
	return tried, err
}

// printDraws prints the grants from which the units would come, in their order, and how the price of an overflow is
// rounded.
func printDraws(io *IO, item *client.DebitedItem) {
	for _, d := range item.Draws {
		if d.Source == client.SourceOverage {
			io.printf("  %s %s would be overage, which no grant pays.\n", amount(d.Amount), d.Meter)
			continue
		}
		io.printf("  %s %s would come from grant %s (%s).\n", amount(d.Amount), d.Meter, d.Grant, d.Source)
	}
	if o := &item.Overflow; o.Units > 0 {
		io.printf("  %s pays for %s %s, at %s per %s: exactly %s, rounded %s to %s.\n",
			o.Meter, amount(o.Units), item.Meter, amount(o.Price.Units), amount(o.Price.Per), o.Exact, o.Rounding, amount(o.Cost))
	}
}

func (c *explainCmd) who() string {
	if c.Subject == "" {
		return c.Tenant
	}
	return c.Subject + " of " + c.Tenant
}

// because returns the text that says why a request is denied.
func because(a *client.CheckAnswer) string {
	switch {
	case a.Code == client.ProblemCodeQuotaExceeded && a.Limiting != nil:
		return fmt.Sprintf("too little is left at the level of the %s until the next period (quota_exceeded)", a.Limiting.Level)
	case a.Code == client.ProblemCodeCreditsExhausted && a.Limiting != nil:
		return fmt.Sprintf("too little is left at the level of the %s, and only a top-up helps (credits_exhausted)", a.Limiting.Level)
	case a.Code == client.ProblemCodeRateLimited:
		return "too many requests in a short time (rate_limited)"
	case a.Blocked != nil:
		return fmt.Sprintf("the %s %s is blocked (%s)", a.Blocked.Kind, a.Blocked.Value, a.Code)
	case a.Code == client.ProblemCodeMeterNotInPlan:
		return "its plan does not have the meter (meter_not_in_plan)"
	case a.Code == client.ProblemCodeTenantSuspended:
		return "the tenant is suspended (tenant_suspended)"
	default:
		return string(a.Code)
	}
}

func (c *explainCmd) printItem(io *IO, item *client.CheckedItem) {
	io.printf("  %s: %s of %s left", item.Meter, amount(item.Remaining), amount(item.Limit))
	if item.MaxAllowedNow < item.Required {
		io.printf("; at most %s may be used now", amount(item.MaxAllowedNow))
		switch {
		case !item.WouldSucceedAt.IsZero():
			io.printf(", and %s from %s on if nothing else happens", amount(item.Required), at(item.WouldSucceedAt))
		case item.Code == client.ProblemCodeQuotaExceeded || item.Code == client.ProblemCodeCreditsExhausted:
			io.printf(", and no future period grants %s", amount(item.Required))
		}
	}
	io.printf(".\n")
}

func printVerdict(io *IO, l *client.LimitVerdict) {
	word := io.paint(green, "allows it")
	if !l.Allowed {
		word = io.paint(red, "denies it")
	} else if l.WouldDeny != nil && *l.WouldDeny {
		word = io.paint(yellow, "would deny it, but only counts (shadow)")
	}
	io.printf("  limit %s (%s) %s: %s of %s left", l.Rule, l.Kind, word, amount(l.Remaining), amount(l.Limit))
	if !l.Allowed && l.RetryAfterMs != nil {
		io.printf("; again in %s", (time.Duration(*l.RetryAfterMs) * time.Millisecond).Round(time.Millisecond))
	}
	if l.BannedMs > 0 {
		io.printf("; banned for %s", (time.Duration(l.BannedMs) * time.Millisecond).Round(time.Second))
	}
	io.printf(".\n")
}
