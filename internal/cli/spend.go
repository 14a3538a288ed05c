package cli

import (
	"context"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

type grantCmd struct {
	Connection
	Tenant         string    `arg:"" help:"The tenant's id."`
	Meter          string    `arg:"" help:"The meter."`
	Amount         int64     `arg:"" help:"How many units."`
	Source         string    `enum:"topup,promo,adjustment" default:"topup" help:"Where they come from: topup, promo or adjustment."`
	ExpiresAt      time.Time `name:"expires-at" placeholder:"TIME" help:"When they expire (RFC 3339). Default: never."`
	Subject        string    `placeholder:"SUBJECT" help:"For a subject with a cap of its own."`
	Reason         string    `placeholder:"TEXT" help:"For the records."`
	IdempotencyKey string    `name:"idempotency-key" placeholder:"KEY" help:"Grants with one key take effect once. Default: a new key."`
	DryRun         bool      `name:"dry-run" help:"Show what would happen, and change nothing."`
}

// Run grants units to a tenant.
func (c *grantCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	var meta client.Meta
	a, err := s.Grant(ctx, c.Tenant, client.GrantRequest{
		Meter: c.Meter, Amount: c.Amount, Source: client.GrantRequestSource(c.Source), ExpiresAt: c.ExpiresAt, Subject: c.Subject, Reason: c.Reason, DryRun: c.DryRun,
	}, keyed(c.IdempotencyKey, &meta)...)
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(a)
	}
	io.printf("%s %s to %s of %s as %s; %s left\n", io.paint(green, done("granted", a.DryRun, meta.Replayed)), amount(a.Amount), a.Meter, a.Tenant, a.GrantID, amount(a.Balance.Remaining))
	return nil
}

type extendCmd struct {
	Connection
	Tenant         string    `arg:"" help:"The tenant's id."`
	Grant          string    `arg:"" help:"The grant's id."`
	ExpiresAt      time.Time `name:"expires-at" placeholder:"TIME" xor:"end" required:"" help:"New expiry (RFC 3339), in the future."`
	Never          bool      `xor:"end" required:"" help:"The grant never expires."`
	Meter          string    `placeholder:"METER" help:"Required only if grants of several meters have this id."`
	Reason         string    `required:"" placeholder:"TEXT" help:"For the records."`
	IdempotencyKey string    `name:"idempotency-key" placeholder:"KEY" help:"Extensions with one key take effect once. Default: a new key."`
	DryRun         bool      `name:"dry-run" help:"Show what would happen, and change nothing."`
}

// Run gives a grant a later end.
func (c *extendCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	request := client.GrantExtensionRequest{Meter: c.Meter, Reason: c.Reason, DryRun: c.DryRun}
	if !c.Never {
		request.ExpiresAt = &c.ExpiresAt
	}
	var meta client.Meta
	a, err := s.ExtendGrant(ctx, c.Tenant, c.Grant, request, keyed(c.IdempotencyKey, &meta)...)
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(a)
	}
	until := "never ends"
	if a.ExpiresAt != nil {
		until = "ends " + a.ExpiresAt.UTC().Format(time.RFC3339)
	}
	io.printf("%s %s of %s: it %s instead of %s, with %s %s left and %s on hold\n", io.paint(green, done("extended", a.DryRun, meta.Replayed)), a.Grant, a.Tenant,
		until, a.PreviousExpiresAt.UTC().Format(time.RFC3339), amount(a.Units), a.Meter, amount(a.Held))
	return nil
}

type debitCmd struct {
	Connection
	Tenant         string `arg:"" help:"The tenant's id."`
	Meter          string `arg:"" help:"The meter."`
	Amount         int64  `arg:"" help:"How many units."`
	Subject        string `placeholder:"SUBJECT" help:"The subject that uses them."`
	Mode           string `enum:"normal,best_effort,drain" default:"normal" help:"If less is left: normal refuses, best_effort charges what is left, drain records the rest as overage."`
	IdempotencyKey string `name:"idempotency-key" placeholder:"KEY" help:"Debits with one key take effect once. Default: a new key."`
	DryRun         bool   `name:"dry-run" help:"Show what would happen, and change nothing."`
}

// Run debits units of a tenant.
func (c *debitCmd) Run(ctx context.Context, io *IO, s *client.Client) error {
	var meta client.Meta
	a, err := s.Debit(ctx, client.DebitRequest{
		Tenant: c.Tenant, Items: []client.Item{{Meter: c.Meter, Amount: c.Amount}}, Subject: c.Subject, Mode: client.Mode(c.Mode), DryRun: c.DryRun,
	}, keyed(c.IdempotencyKey, &meta)...)
	if err != nil {
		return err
	}
	if c.JSON {
		return io.json(a)
	}
	for _, item := range a.Items {
		io.printf("%s %s %s of %s as %s; %s left\n", io.paint(green, done("debited", a.DryRun, meta.Replayed)), amount(item.Charged), item.Meter, a.Tenant, a.OperationID, amount(item.Remaining))
		if item.Shortfall > 0 {
			io.printf("  %s were not covered\n", amount(item.Shortfall))
		}
	}
	return nil
}

// keyed returns the options of a call. They contain the idempotency key if the user gave one.
func keyed(key string, meta *client.Meta) []client.Option {
	options := []client.Option{client.WithMeta(meta)}
	if key != "" {
		options = append(options, client.WithKey(key))
	}
	return options
}

// done returns the beginning of a sentence about the outcome of an operation.
func done(verb string, dryRun, replayed bool) string {
	switch {
	case dryRun:
		return "would have " + verb
	case replayed:
		return "already " + verb
	default:
		return verb
	}
}
