package cli

import (
	"context"

	"github.com/quotasvc/quotasvc/client"
)

type shadowCmd struct {
	Connection
	Rule string `arg:"" help:"The limit's id."`
}

// Run prints how many requests a limit in shadow mode would have denied, and how many of these requests were denied
// by enforced limits.
func (c *shadowCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	got, err := s.GetLimitShadow(ctx, c.Rule)
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(got)
	}
	out := io.table("LAST", "WOULD DENY", "OF TENANTS", "LIVE LIMIT", "IT DENIED", "WOULD DENY AS WELL", "WOULD LET PASS")
	for i := range got.Spans {
		span := &got.Spans[i]
		cells := []string{span.Span, amount(span.WouldDeny), amount(span.Tenants)}
		for _, l := range span.Limits {
			out.row(append(cells, l.Rule, amount(l.Denied), amount(l.WouldDeny), amount(l.WouldPass))...)
			cells = []string{"", "", ""}
		}
		if len(span.Limits) == 0 {
			out.row(append(cells, "-", "-", "-", "-")...)
		}
	}
	if err := out.end(); err != nil || len(got.Spans) == 0 {
		return err
	}
	return printShadowed(io, &got.Spans[len(got.Spans)-1])
}

// printShadowed prints the tenants with the most requests that the limit would have denied. It also prints the number
// of these requests that were refused for another reason.
func printShadowed(io *IO, longest *client.LimitShadowSpan) error {
	if longest.WouldDenyRefused > 0 {
		io.printf("In the last %s it would also have denied %s requests that were refused for another reason than a limit.\n", longest.Span, amount(longest.WouldDenyRefused))
	}
	if len(longest.Top) == 0 {
		return nil
	}
	io.printf("\n")
	out := io.table("TENANT", "WOULD DENY, LAST "+longest.Span)
	for _, t := range longest.Top {
		out.row(t.Tenant, amount(t.WouldDeny))
	}
	return out.end()
}
