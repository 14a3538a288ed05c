package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

type tenantCmd struct {
	List   tenantListCmd   `cmd:"" help:"List tenants."`
	Get    tenantGetCmd    `cmd:"" help:"Show a tenant with its balances."`
	Create tenantCreateCmd `cmd:"" help:"Create a tenant."`
}

type tenantListCmd struct {
	Connection
	Near   int               `placeholder:"PERCENT" help:"Only tenants that have used at least this percentage of --meter."`
	Meter  string            `placeholder:"METER" help:"The meter of --near and of --sort remaining."`
	Plan   string            `placeholder:"PLAN" help:"Only tenants of this plan."`
	Status string            `enum:",active,suspended" default:"" placeholder:"STATUS" help:"Only active, or only suspended tenants."`
	Meta   map[string]string `name:"metadata" placeholder:"KEY=VALUE" help:"Only tenants with this in their metadata."`
	Sort   string            `enum:",remaining,tenant" default:"" placeholder:"ORDER" help:"remaining (of --meter, least first) or tenant."`
	Limit  int               `default:"100" placeholder:"N" help:"Maximum number; 0: all."`
}

// listedTenant is a tenant in the list. With --near it also has the tenant's use.
type listedTenant struct {
	Tenant    string `json:"tenant"`
	Plan      string `json:"plan"`
	Status    string `json:"status"`
	Timezone  string `json:"timezone"`
	Used      *int64 `json:"used"`
	Remaining *int64 `json:"remaining"`
}

// Run prints a list of tenants.
func (c *tenantListCmd) Run(ctx context.Context, io *IO) error {
	if c.Near < 0 || c.Near > 100 || c.Limit < 0 {
		return usage("--near must be from 1 to 100, and --limit at least 0")
	}
	q := given(map[string]string{"meter": c.Meter, "plan": c.Plan, "status": c.Status, "sort": c.Sort})
	if c.Near > 0 {
		q.Set("near", strconv.Itoa(c.Near))
	}
	for key, value := range c.Meta {
		q.Set("metadata."+key, value)
	}
	s, err := c.Dial(io)
	if err != nil {
		return err
	}
	var out *table
	if !c.JSON {
		out = io.table("TENANT", "PLAN", "STATUS", "USED", "LEFT")
	}
	err = eachItem(ctx, s, "/v1/tenants", q, c.Limit, func(raw rawItem) error {
		if c.JSON {
			return io.line(raw)
		}
		var t listedTenant
		if err := raw.into(&t); err != nil {
			return err
		}
		out.row(t.Tenant, t.Plan, t.Status, optional(t.Used), optional(t.Remaining))
		return nil
	})
	if out != nil {
		err = errors.Join(err, out.end())
	}
	return err
}

func optional(n *int64) string {
	if n == nil {
		return "-"
	}
	return amount(*n)
}

type tenantGetCmd struct {
	Connection
	Tenant string `arg:"" help:"The tenant's id."`
}

// Run prints a tenant.
func (c *tenantGetCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	t, err := s.GetTenant(ctx, c.Tenant)
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(t)
	}
	printTenant(io, t)
	list, err := s.ListBalances(ctx, c.Tenant, client.ListBalancesQuery{})
	if err != nil {
		return err
	}
	io.printf("\n")
	return printBalances(io, list.Items)
}

func printTenant(io *IO, t *client.Tenant) {
	io.printf("%s: plan %s, %s since %s, periods in %s\n", io.paint(bold, t.Tenant), t.Plan, t.Status, at(t.CreatedAt), t.Timezone)
	if p := t.Pending; p != nil {
		io.printf("  from %s on: plan %s, periods in %s\n", at(p.From), p.Plan, p.Timezone)
	}
	var metadata map[string]json.RawMessage   // a decoder of the values would change some of them
	_ = json.Unmarshal(t.Metadata, &metadata) // the service stores only objects
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value := string(metadata[key])
		_ = json.Unmarshal(metadata[key], &value) // a text is printed without quotation marks
		io.printf("  %s: %s\n", printable(key), printable(value))
	}
	for _, meter := range slices.Sorted(maps.Keys(t.Overrides)) {
		io.printf("  %s: %s instead of the plan's amount\n", meter, amount(t.Overrides[meter]))
	}
}

type tenantCreateCmd struct {
	Connection
	Tenant   string            `arg:"" help:"The tenant's id."`
	Plan     string            `required:"" placeholder:"PLAN" help:"Its plan."`
	Timezone string            `placeholder:"ZONE" help:"IANA zone of its periods, as in Europe/Berlin. Default: UTC."`
	Anchor   time.Time         `placeholder:"TIME" help:"Start of its own periods (RFC 3339). Default: now."`
	Meta     map[string]string `name:"metadata" placeholder:"KEY=VALUE" help:"Metadata stored with the tenant; may be repeated."`
}

// Run creates a tenant. If the tenant exists already, it does not change and Run fails.
func (c *tenantCreateCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	if _, err := s.GetTenant(ctx, c.Tenant); err == nil {
		return fmt.Errorf("the tenant %s exists already", c.Tenant)
	} else if !errors.Is(err, client.ErrTenantNotFound) {
		return err
	}
	body := client.TenantRequest{Plan: c.Plan, Timezone: c.Timezone, Anchor: c.Anchor}
	for key, value := range c.Meta {
		if body.Metadata == nil {
			body.Metadata = client.Metadata{}
		}
		body.Metadata[key] = value
	}
	t, err := s.PutTenant(ctx, c.Tenant, body)
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(t)
	}
	printTenant(io, t)
	return nil
}

type balanceCmd struct {
	Connection
	Tenant  string  `arg:"" help:"The tenant's id."`
	Meter   string  `arg:"" optional:"" help:"Only this meter, with its grants."`
	Subject string  `placeholder:"SUBJECT" help:"A subject with a cap of its own."`
	AsOf    instant `name:"as-of" placeholder:"TIME" help:"The balances at this time: a time (RFC 3339), a day, yesterday, or how long ago (24h, 7d)."`
}

// Run prints the balances of a tenant.
func (c *balanceCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	asOf, err := c.AsOf.resolve(ctx, s)
	if err != nil {
		return err
	}
	if c.Meter == "" {
		list, err := s.ListBalances(ctx, c.Tenant, client.ListBalancesQuery{Subject: c.Subject, AsOf: asOf})
		if err != nil {
			return err
		}
		if c.JSON {
			return io.json(list)
		}
		return printBalances(io, list.Items)
	}
	b, err := s.GetBalance(ctx, c.Tenant, c.Meter, client.GetBalanceQuery{Subject: c.Subject, AsOf: asOf})
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(b)
	}
	if err := printBalances(io, []client.Balance{*b}); err != nil {
		return err
	}
	if len(b.Grants) == 0 {
		return nil
	}
	io.printf("\n")
	out := io.table("GRANT", "SOURCE", "LEFT", "OF", "PRIORITY", "EXPIRES", "STATUS")
	for _, g := range b.Grants {
		out.row(g.GrantID, string(g.Source), amount(g.Remaining), amount(g.Amount), strconv.Itoa(int(g.Priority)), atOrNone(g.ExpiresAt), string(g.Status))
	}
	return out.end()
}

func printBalances(io *IO, list []client.Balance) error {
	out := io.table("METER", "LEFT", "LIMIT", "USED", "HELD", "OVERAGE", "PERIOD ENDS")
	slices.SortStableFunc(list, func(a, b client.Balance) int { return strings.Compare(a.Meter, b.Meter) })
	for i := range list {
		b := &list[i]
		meter := b.Meter
		if b.Subject != "" {
			meter += " of " + b.Subject
		}
		out.row(meter, amount(b.Remaining), amount(b.Limit), amount(b.Used), amount(b.Held), amount(b.Overage), atOrNone(b.Period.End))
	}
	return out.end()
}
