package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// calls and credits are meters of the catalogue of `quotasvc dev`.
const (
	calls   = "api_calls"
	credits = "ai_credits"
)

// seats is a meter of kind gauge that the story adds. The value of a gauge is set, not used up.
const seats = "seats"

// features returns the features of a plan.
func features(sso bool, upload int) client.Features {
	return client.Features{"sso": sso, "max_upload_mb": upload}
}

// customer is a tenant of the story.
type customer struct {
	id, plan, zone string
	calls, credits int64 // units used on a working day
	segment        string
}

func customers() []customer {
	return []customer{
		{"acme", "starter", "Europe/Berlin", 840, 34, "smb"},
		{"globex", "starter", "America/New_York", 520, 0, "smb"},
		{"hooli", "pro", "Asia/Tokyo", 2_600, 90, "enterprise"},
		{"initech", "starter", "America/Chicago", 300, 0, "smb"},
		{"umbrella", "starter", "Europe/London", 180, 40, "startup"},
	}
}

// begin creates the plans, limits, webhook and tenants that do not exist yet.
func (s *story) begin(ctx context.Context) error {
	prepaid := client.Allowance{Meter: credits, Amount: 0, Every: client.AllowanceEveryOnce, Anchor: client.AllowanceAnchorTenant}
	monthly := func(amount int64) client.Allowance {
		return client.Allowance{Meter: calls, Amount: amount, Every: client.AllowanceEveryMonth, Anchor: client.AllowanceAnchorCalendar}
	}
	pro := monthly(100_000)
	most, each := int64(10_000), int64(60_000)
	pro.PerSubject = &each
	pro.Overage = &client.Overage{Policy: client.OveragePolicyAllow, Cap: &most}
	perTenant := []client.LimitPer{client.LimitPerTenant}
	bucket := func(rate string, burst int64, mode client.LimitMode) client.LimitRequest {
		return client.LimitRequest{Per: perTenant, Kind: client.LimitKindTokenBucket, Rate: rate, Burst: burst, Mode: mode, Match: client.LimitMatch{Route: "/render"}}
	}
	_, err := s.api.ApplyCatalog(ctx, client.CatalogRequest{
		Meters: map[string]client.MeterRequest{seats: {Unit: "seats", Kind: client.MeterRequestKindGauge, Description: "People who may sign in"}},
		Plans: map[string]client.PlanRequest{
			"starter": {Allowances: []client.Allowance{monthly(20_000), prepaid, {Meter: seats, Amount: 5}}, Features: features(false, 50)},
			"pro":     {Allowances: []client.Allowance{pro, prepaid, {Meter: seats, Amount: 25}}, Features: features(true, 500)},
		},
		Limits: map[string]client.LimitRequest{
			"render":        bucket("10/s", 20, client.LimitModeEnforce),
			"render-strict": bucket("1/s", 4, client.LimitModeShadow),
			"reports":       {Per: perTenant, Kind: client.LimitKindFixedWindow, Rate: "3/h", Match: client.LimitMatch{Route: "/reports"}},
		},
	})
	if err != nil {
		return fmt.Errorf("make the catalogue: %w", err)
	}
	for _, c := range customers() {
		if _, err := s.api.GetTenant(ctx, c.id); !unknown(err) {
			if err != nil {
				return err
			}
			continue // an earlier start has created the tenant, and its plan may have changed since then
		}
		if _, err := s.api.PutTenant(ctx, c.id, client.TenantRequest{Plan: c.plan, Timezone: c.zone, Metadata: client.Metadata{"segment": c.segment}}); err != nil {
			return fmt.Errorf("make the tenant %s: %w", c.id, err)
		}
	}
	hooks, err := s.api.ListWebhooks(ctx, client.ListWebhooksQuery{Limit: 1})
	if err != nil || len(hooks.Items) > 0 {
		return err
	}
	_, err = s.api.CreateWebhook(ctx, client.WebhookRequest{ // paused: dev sends nothing to other systems
		URL: "https://hooks.example.com/quotasvc", Status: client.WebhookStatusPaused, Types: []client.EventType{client.EventTypeBalanceExhausted, client.EventTypePlanChanged},
	})
	return err
}

// happen plays the events of one hour of the story.
func (s *story) happen(ctx context.Context, hour int) error {
	if event := s.events()[hour]; event != nil {
		if err := event(ctx); err != nil {
			return err
		}
	}
	if hour >= lastHours {
		if err := s.runOut(ctx, hour); err != nil {
			return err
		}
	}
	_, err := s.api.DebitBatch(ctx, client.DebitBatchRequest{Debits: s.use(hour)})
	return err
}

// use returns the debits of the tenants in the step that starts at this hour. The amounts are smaller at weekends, and
// differ from day to day.
func (s *story) use(hour int) []client.BatchDebit {
	day := s.today.Add(-Behind + time.Duration(hour)*time.Hour)
	part := int64(100)
	if d := day.Weekday(); d == time.Saturday || d == time.Sunday {
		part = 35
	}
	if hour >= lastHours {
		part /= 24
	}
	var list []client.BatchDebit
	for i, c := range customers() {
		if c.id == "initech" && hour >= suspended {
			continue
		}
		wave := int64((hour/24)*37+i*23) % 60 // 0 to 59: up to 60 % more
		d := client.BatchDebit{
			Tenant: c.id, IdempotencyKey: fmt.Sprintf("demo-%d-%s", hour, c.id), Subject: fmt.Sprintf("user-%d", 1+(hour/24+i)%3),
			Items: client.Items{{Meter: calls, Amount: max(1, c.calls*(100+wave)*part/10_000)}},
		}
		if c.credits > 0 && hour < lastHours {
			d.Items = append(d.Items, client.Item{Meter: credits, Amount: max(1, c.credits*(100+wave)*part/10_000)})
			d.Metadata = client.Metadata{"model": []string{"small", "large"}[(hour/24)%2]}
		}
		list = append(list, d)
	}
	return list
}

const suspended = 41 * 24 // the hour of the story in which the tenant initech is suspended

// events maps an hour of the story to the events that happen only in this hour.
func (s *story) events() map[int]func(context.Context) error {
	return map[int]func(context.Context) error{
		0: func(ctx context.Context) error {
			return s.grants(ctx,
				grant{"acme", "invoice-1041", client.GrantRequestSourceTopup, 1_200, 0, "invoice 1041"},
				grant{"umbrella", "invoice-1042", client.GrantRequestSourceTopup, 2_000, 0, "invoice 1042"},
				grant{"hooli", "contract-7", client.GrantRequestSourceTopup, 9_000, 365, "yearly contract"})
		},
		24: func(ctx context.Context) error {
			return s.seat(ctx, map[string]int64{"acme": 4, "globex": 5, "hooli": 18, "umbrella": 2})
		},
		6 * 24: func(ctx context.Context) error {
			return s.grants(ctx, grant{"acme", "launch-gift", client.GrantRequestSourcePromo, 150, 30, "thanks for the launch"})
		},
		20 * 24: func(ctx context.Context) error {
			return s.grants(ctx, grant{"acme", "invoice-1077", client.GrantRequestSourceTopup, 600, 0, "invoice 1077"})
		},
		24 * 24: func(ctx context.Context) error {
			_, err := s.api.PatchTenant(ctx, "acme", client.TenantPatch{
				Plan: "pro", Apply: client.TenantPatchApplyNow, Usage: client.TenantPatchUsageCarry, Reason: "upgrade, ticket 1203",
			})
			return err
		},
		26 * 24: func(ctx context.Context) error { return s.seat(ctx, map[string]int64{"acme": 9}) },
		30 * 24: func(ctx context.Context) error {
			_, err := s.api.Refund(ctx, client.RefundRequest{
				Tenant: "acme", OperationID: fmt.Sprintf("demo-%d-acme", 29*24), Meter: credits, Amount: 5, Reason: "the picture was broken, ticket 1219",
			}, client.WithKey("demo-refund"))
			return err
		},
		suspended: func(ctx context.Context) error {
			_, err := s.api.PatchTenant(ctx, "initech", client.TenantPatch{Status: client.TenantStatusSuspended, Reason: "chargeback, ticket 1231"})
			return err
		},
	}
}

// seat sets the gauge `seats` of each tenant. The value of the gauge is the number of people who may sign in.
func (s *story) seat(ctx context.Context, of map[string]int64) error {
	for tenant, n := range of {
		if _, err := s.api.SetGauge(ctx, tenant, seats, client.SetGaugeQuery{}, client.GaugeRequest{Value: n}, client.WithKey(fmt.Sprintf("demo-seats-%d", n))); err != nil {
			return fmt.Errorf("seats of %s: %w", tenant, err)
		}
	}
	return nil
}

// grant is a grant of credits.
type grant struct {
	tenant, id string
	source     client.GrantRequestSource
	amount     int64
	days       int // until the grant ends; 0: never
	reason     string
}

func (s *story) grants(ctx context.Context, list ...grant) error {
	for _, g := range list {
		request := client.GrantRequest{Meter: credits, Amount: g.amount, Source: g.source, GrantID: g.id, Reason: g.reason}
		if g.days > 0 {
			request.ExpiresAt = s.today.Add(-s.behind).AddDate(0, 0, g.days+1)
		}
		if _, err := s.api.Grant(ctx, g.tenant, request, client.WithKey("demo-"+g.id)); err != nil {
			return fmt.Errorf("grant %s: %w", g.id, err)
		}
	}
	return nil
}

// These are the remaining units at the end of the story, and the units that acme asks for.
const (
	callsLeft   = 850 // remaining calls of globex
	creditsLeft = 12  // remaining credits of acme
	asked       = 120 // credits that acme asks for, several times
	muchTooMuch = 2_500
)

// runOut uses nearly all calls of globex and nearly all credits of acme. Then acme asks for more credits than it has.
func (s *story) runOut(ctx context.Context, hour int) error {
	left := Days*24 - hour
	if err := s.drain(ctx, "globex", calls, callsLeft, left, hour); err != nil {
		return err
	}
	if err := s.drain(ctx, "acme", credits, creditsLeft, max(1, left-8), hour); err != nil {
		return err
	}
	if left > 6 {
		return nil
	}
	_, err := s.api.Debit(ctx, client.DebitRequest{
		Tenant: "acme", Subject: "user-2", Items: client.Items{{Meter: credits, Amount: asked}}, Metadata: client.Metadata{"model": "large"},
	}, client.WithKey(fmt.Sprintf("demo-%d-render", hour)), client.KeepDenial())
	return refused(err)
}

// askTooMuch sends a debit of acme for more credits than it ever had.
func (s *story) askTooMuch(ctx context.Context) error {
	_, err := s.api.Debit(ctx, client.DebitRequest{
		Tenant: "acme", Subject: "user-1", Items: client.Items{{Meter: credits, Amount: muchTooMuch}}, Metadata: client.Metadata{"model": "large"},
	}, client.WithKey("demo-too-much"), client.KeepDenial())
	return refused(err)
}

// drain makes the debit of one hour. The amount is the units above `rest`, divided by `parts`, the number of hours that
// remain. After the last of these hours, `rest` units remain.
func (s *story) drain(ctx context.Context, tenant, meter string, rest int64, parts, hour int) error {
	b, err := s.api.GetBalance(ctx, tenant, meter, client.GetBalanceQuery{})
	if err != nil {
		return err
	}
	amount := (b.Remaining - rest) / int64(parts)
	if amount <= 0 {
		return nil
	}
	_, err = s.api.Debit(ctx, client.DebitRequest{Tenant: tenant, Subject: "batch", Items: client.Items{{Meter: meter, Amount: amount}}},
		client.WithKey(fmt.Sprintf("demo-%d-%s-batch", hour, tenant)))
	if e := client.AsError(err); e != nil && e.Code == client.ProblemCodeIdempotencyKeyReused {
		return nil // this debit was made before an interruption
	}
	return err
}

// end plays the events at the present: a hold, and calls that a rate limit refuses.
func (s *story) end(ctx context.Context) error {
	_, err := s.api.Hold(ctx, client.HoldRequest{
		Tenant: "hooli", HoldID: "render-8841", Subject: "user-1", TTLSeconds: 24 * 3600, Items: client.Items{{Meter: credits, Amount: 250}},
	}, client.WithKey("demo-hold"))
	if err != nil {
		return err
	}
	err = s.grants(ctx, grant{"hooli", "invoice-1102", client.GrantRequestSourceTopup, 1_000, 90, "invoice 1102"})
	if err != nil {
		return err
	}
	_, err = s.api.Adjust(ctx, "globex", client.AdjustmentRequest{Meter: calls, Amount: 37, Reason: "counted twice on Monday, ticket 1240"}, client.WithKey("demo-adjust"))
	if err != nil {
		return err
	}
	for i := range 8 {
		route := "/render"
		if i >= 3 {
			route = "/reports"
		}
		_, err := s.api.Consume(ctx, client.ConsumeRequest{Tenant: "acme", Subject: "user-3", Route: route, Items: client.Items{{Meter: calls, Amount: 1}}},
			client.WithKey(fmt.Sprintf("demo-consume-%d", i)), client.KeepDenial())
		if err := refused(err); err != nil {
			return err
		}
	}
	return nil
}
