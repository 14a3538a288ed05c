package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

type usageCmd struct {
	Connection
	Tenant   string  `arg:"" help:"The tenant's id."`
	Meter    string  `arg:"" help:"The meter."`
	By       string  `enum:"hour,day,month" default:"day" help:"hour, day or month."`
	From     instant `placeholder:"TIME" help:"Begin: a time (RFC 3339), a day, yesterday, or how long ago (24h, 7d). Default: a day before --to with --by hour, 30 days with day, a year with month."`
	To       instant `placeholder:"TIME" help:"End, in the same forms; the end itself is not included. Default: now."`
	Subject  string  `placeholder:"SUBJECT" help:"Only of this subject."`
	GroupBy  string  `name:"group-by" placeholder:"KEY" help:"subject, or metadata.KEY of a dimension of the meter."`
	Timezone string  `placeholder:"ZONE" help:"Time zone of the hours, days and months. Default: UTC."`
}

// Run prints the use of a meter over time.
func (c *usageCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	if !c.To.given() {
		c.To.from = func(now time.Time) time.Time { return now }
	}
	to, err := c.To.resolve(ctx, s)
	if err != nil {
		return err
	}
	from, err := c.From.resolve(ctx, s)
	if err != nil {
		return err
	}
	if from.IsZero() {
		from = to.Add(-map[string]time.Duration{"hour": 24 * time.Hour, "day": 30 * 24 * time.Hour, "month": 365 * 24 * time.Hour}[c.By])
	}
	q := given(map[string]string{"subject": c.Subject, "group_by": c.GroupBy, "timezone": c.Timezone})
	q.Set("meter", c.Meter)
	q.Set("by", c.By)
	q.Set("from", from.UTC().Format(time.RFC3339Nano))
	q.Set("to", to.UTC().Format(time.RFC3339Nano))
	var list struct {
		Items []rawItem `json:"items"`
	}
	if err := s.Do(ctx, http.MethodGet, "/v1/tenants/"+url.PathEscape(c.Tenant)+"/usage", q, nil, &list); err != nil {
		return err
	}
	if c.JSON {
		return each(list.Items, func(raw rawItem) error { return io.line(raw) })
	}
	heading := []string{"FROM", "USED", "OVERAGE", "OVERFLOW", "REFUNDED", "OPERATIONS"}
	if c.GroupBy != "" {
		heading = slices.Insert(heading, 1, strings.ToUpper(c.GroupBy))
	}
	out := io.table(heading...)
	err = each(list.Items, func(raw rawItem) error {
		var u client.Usage
		if err := raw.into(&u); err != nil {
			return err
		}
		cells := []string{u.Start.Format("2006-01-02 15:04Z07:00"), amount(u.Used), amount(u.Overage), amount(u.Overflow), amount(u.Refunded), amount(u.Operations)}
		if c.GroupBy != "" {
			cells = slices.Insert(cells, 1, groupOf(u.Group))
		}
		out.row(cells...)
		return nil
	})
	return errors.Join(err, out.end())
}

func groupOf(group map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(group)) {
		parts = append(parts, orDash(group[name]))
	}
	return orDash(strings.Join(parts, " "))
}

func each[T any](list []T, do func(T) error) error {
	for _, item := range list {
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
}

type statementCmd struct {
	Connection
	Tenant  string `arg:"" help:"The tenant's id."`
	Meter   string `arg:"" help:"The meter."`
	Period  string `arg:"" default:"current" help:"current, last, at:TIME, or the start of a period."`
	Subject string `placeholder:"SUBJECT" help:"Of a subject with a cap of its own."`
	CSV     bool   `name:"csv" xor:"form" help:"Print the lines as CSV."`
}

// Run prints a statement.
func (c *statementCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	q := client.GetStatementQuery{Subject: c.Subject}
	if c.CSV {
		text, err := s.GetStatementCSV(ctx, c.Tenant, c.Meter, c.Period, q)
		if err == nil {
			_, err = io.Out.Write(text)
		}
		return err
	}
	a, err := s.GetStatement(ctx, c.Tenant, c.Meter, c.Period, q)
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(a)
	}
	state := "open"
	if a.Closed {
		state = "closed"
	}
	io.printf("%s of %s, %s to %s (%s", io.paint(bold, a.Meter), a.Tenant, atOrNone(a.Period.Start), atOrNone(a.Period.End), state)
	if a.Plan != "" {
		io.printf(", plan %s version %d", a.Plan, a.PlanVersion)
	}
	io.printf(")\n")
	out := io.table("", "AMOUNT")
	for _, row := range []struct {
		name string
		n    int64
	}{
		{"opening", a.Opening},
		{"granted", a.Granted},
		{"amended", a.Amended},
		{"adjusted", a.Adjusted},
		{"used", -a.Used},
		{"refunded", a.Refunded},
		{"expired", -a.Expired},
		{"held", -a.Held},
		{"overage", a.Overage},
		{"overflow", a.Overflow},
		{"closing", a.Closing},
	} {
		if row.n != 0 || row.name == "opening" || row.name == "closing" {
			out.row(row.name, amount(row.n))
		}
	}
	return out.end()
}

type denialsCmd struct {
	Connection
	Tenant string  `arg:"" help:"The tenant's id."`
	From   instant `placeholder:"TIME" help:"Begin: a time (RFC 3339), a day, yesterday, or how long ago (24h, 7d). Default: a day before --to."`
	To     instant `placeholder:"TIME" help:"End, in the same forms; the end itself is not included. Default: now."`
	Limit  int     `default:"100" placeholder:"N" help:"Maximum number of single denials."`
}

// Run prints why requests of a tenant were refused.
func (c *denialsCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	q := url.Values{"limit": {fmt.Sprint(c.Limit)}}
	for name, bound := range map[string]*instant{"from": &c.From, "to": &c.To} {
		switch at, err := bound.resolve(ctx, s); {
		case err != nil:
			return err
		case bound.given():
			q.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	var raw jsonText
	if err := s.Do(ctx, http.MethodGet, "/v1/tenants/"+url.PathEscape(c.Tenant)+"/denials", q, nil, &raw); err != nil {
		return missing(err, "denials")
	}
	if c.JSON {
		return io.json(raw)
	}
	var list client.DenialList
	if err := raw.into(&list); err != nil {
		return err
	}
	if len(list.Items)+len(list.Counts) == 0 {
		io.printf("No request of %s was refused from %s to %s.\n", c.Tenant, at(list.From), at(list.To))
		return nil
	}
	if err := printSums(io, list.Counts); err != nil || len(list.Items) == 0 {
		return err
	}
	io.printf("\n")
	out := io.table("AT", "CODE", "METER OR LIMIT", "SUBJECT", "ROUTE", "REQUIRED", "AVAILABLE", "REQUEST")
	for i := range list.Items {
		d := &list.Items[i]
		required := "-"
		if d.Available != nil { // the API returns both, or neither
			required = amount(d.Required)
		}
		out.row(at(d.At), string(d.Code), orDash(refusedBy(d.Rule, d.Meter)), orDash(d.Subject), orDash(d.Route), required, optional(d.Available), orDash(d.RequestID))
	}
	return out.end()
}

// refusedBy returns the names of the limit and of the meter of a refusal. Either may be missing.
func refusedBy(rule, meter string) string { return strings.TrimSpace(rule + " " + meter) }

// printSums adds the counts of all minutes that have the same code and the same limit or meter. It prints the sums,
// the largest sum first.
func printSums(io *IO, counts []client.DenialCount) error {
	type key struct {
		code client.ProblemCode
		what string
	}
	sums, last := map[key]int64{}, map[key]time.Time{}
	var order []key
	for i := range counts {
		k := key{counts[i].Code, refusedBy(counts[i].Rule, counts[i].Meter)}
		if sums[k] == 0 {
			order = append(order, k)
		}
		sums[k] += counts[i].N
		if counts[i].Minute.After(last[k]) {
			last[k] = counts[i].Minute
		}
	}
	slices.SortStableFunc(order, func(a, b key) int { return int(sums[b] - sums[a]) })
	out := io.table("DENIALS", "CODE", "METER OR LIMIT", "LAST")
	for _, k := range order {
		out.row(amount(sums[k]), string(k.code), orDash(k.what), at(last[k]))
	}
	return out.end()
}

type eventsCmd struct {
	Connection
	Follow bool   `short:"f" help:"Wait for further events, until interrupted."`
	Tenant string `placeholder:"TENANT" help:"Only of this tenant."`
	Type   string `placeholder:"TYPE" help:"Only of this type, as in balance.threshold_reached."`
	After  string `placeholder:"ID" help:"Only events after this one."`
	Limit  int    `default:"0" placeholder:"N" help:"Maximum number; 0: all of the last 90 days."`
}

// event is an event of the service.
type event struct {
	EventID string    `json:"event_id"`
	Type    string    `json:"type"`
	At      time.Time `json:"at"`
	Tenant  string    `json:"tenant"`
	Meter   string    `json:"meter"`
	Subject string    `json:"subject"`
	Data    jsonText  `json:"data"`
}

// pollEvery is the pause between two requests of --follow. The service emits events within 60 s of their cause.
const pollEvery = 2 * time.Second

// Run prints events, the oldest first.
func (c *eventsCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	after, shown := c.After, 0
	for {
		q := given(map[string]string{"tenant": c.Tenant, "type": c.Type, "after": after})
		left := 0
		if c.Limit > 0 {
			left = c.Limit - shown
		}
		err := eachItem(ctx, s, "/v1/events", q, left, func(raw rawItem) error {
			var e event
			if err := raw.into(&e); err != nil {
				return err
			}
			after = e.EventID
			shown++
			if c.JSON {
				return io.line(raw)
			}
			io.printf("%s  %s  %s  %s\n", at(e.At), io.paint(bold, e.Type), orDash(strings.TrimSpace(e.Tenant+" "+e.Meter+" "+e.Subject)), string(e.Data))
			return nil
		})
		// With --follow, an outage does not end the command.
		if err != nil && (!c.Follow || !errors.Is(err, client.ErrUndecided)) {
			return missing(err, "events")
		}
		if err != nil {
			fmt.Fprintf(io.Err, "quotasvc: %v; asking again\n", err)
		}
		if !c.Follow || c.Limit > 0 && shown >= c.Limit {
			return nil
		}
		if !backoff.Sleep(ctx, pollEvery) {
			return ctx.Err()
		}
	}
}

// missing explains a 404 whose code is not_found: the version of the service is too old for this request.
func missing(err error, what string) error {
	if e := client.AsError(err); e != nil && e.Code == client.ProblemCodeNotFound {
		return fmt.Errorf("this service has no %s: it is of an earlier version (%w)", what, err)
	}
	return err
}
