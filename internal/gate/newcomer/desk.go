package newcomer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// DefaultPerSecond is the number of tenants that an instance makes a second at the most: a sign-up wave of 180,000 an hour, and a table that a flood of
// invented names fills with no more.
const DefaultPerSecond = 50

// Config configures a Desk.
type Config struct {
	Plan      string                       // of newcomers. Required
	PerSecond int                          // tenants made a second, by this instance; 0: DefaultPerSecond
	Clock     interface{ Now() time.Time } // the ledger. Required
}

// Desk takes newcomers. nil takes nobody.
type Desk struct {
	cfg     Config
	catalog *catalog.Catalog
	making  singleflight.Group // by tenant

	mu    sync.Mutex
	space time.Time // when the next tenant could be made if each took its share of a second
}

// New returns a desk.
func New(c *catalog.Catalog, cfg Config) *Desk {
	if cfg.PerSecond <= 0 {
		cfg.PerSecond = DefaultPerSecond
	}
	return &Desk{cfg: cfg, catalog: c}
}

// Plan returns the plan of newcomers, and false where id cannot be one: there is no desk, the plan does not exist, or id is no name of a tenant.
func (d *Desk) Plan(id string) (*catalog.Plan, bool) {
	if d == nil || !bound.ID(id) {
		return nil, false
	}
	p := d.catalog.Snapshot().Plans[d.cfg.Plan]
	return p, p != nil
}

// Missing returns an error if the plan of newcomers does not exist: then nobody is taken.
func (d *Desk) Missing() error {
	if d == nil || d.catalog.Snapshot().Plans[d.cfg.Plan] != nil {
		return nil
	}
	return fmt.Errorf("the default plan %q does not exist: no tenant is made on its first use", d.cfg.Plan)
}

// Admit makes the tenant of a first use that its plan allows. It returns the refusal of one that it does not allow.
func (d *Desk) Admit(ctx context.Context, tenant string, use ledger.Operation) error {
	if err := use.Validate(); err != nil {
		return err
	}
	if _, err := d.Try(tenant, use); err != nil {
		return err
	}
	_, err, _ := d.making.Do(tenant, func() (any, error) { return nil, d.make(context.WithoutCancel(ctx), tenant) })
	return err
}

// Try decides a use as the ledger would if the tenant had just been made, and changes nothing. It returns the answer or the refusal.
func (d *Desk) Try(tenant string, use ledger.Operation) (answer any, err error) {
	plan, ok := d.Plan(tenant)
	if !ok {
		return nil, ledger.Errorf(ledger.CodeTenantNotFound, "tenant", "tenant %q does not exist", tenant)
	}
	c := ledger.NewCall(use)
	w := newWorld(d.catalog.Snapshot(), plan, d.cfg.Clock.Now())
	if err := w.decide(c, use.Demand(&ledger.Located{})); err != nil {
		return nil, err
	}
	return c.Answer, c.Err
}

// Welcome makes the tenant of a first use; a nil Desk knows that it is none. done: that is all, because the use was refused, or is a dry run, which changes nothing. Otherwise
// the ledger decides the use.
func Welcome[R any](ctx context.Context, d *Desk, use ledger.Operation, dryRun bool) (result *R, done bool, err error) {
	if d == nil {
		return nil, false, nil
	}
	tenant := use.ID().Tenant
	if !dryRun {
		err = d.Admit(ctx, tenant, use)
		return nil, err != nil, err
	}
	answer, err := d.Try(tenant, use)
	result, _ = answer.(*R)
	return result, true, err
}

// Check answers a check as the ledger would if the tenant had just been made.
func (d *Desk) Check(tenant, subject string, items []ledger.Item) (*ledger.CheckResult, error) {
	plan, ok := d.Plan(tenant)
	if !ok {
		return nil, ledger.Errorf(ledger.CodeTenantNotFound, "tenant", "tenant %q does not exist", tenant)
	}
	return newWorld(d.catalog.Snapshot(), plan, d.cfg.Clock.Now()).check(&ledger.CheckRequest{Tenant: tenant, Subject: subject, Items: items})
}

// make stores the tenant.
func (d *Desk) make(ctx context.Context, tenant string) error {
	wait := d.take(time.Now())
	if wait > 0 {
		return &ledger.Error{
			Code: ledger.CodeQueueFull, RetryAfter: max(wait, time.Second),
			Detail: fmt.Sprintf("more than %d tenants a second are new; this attempt did nothing", d.cfg.PerSecond),
		}
	}
	err := d.catalog.MakeTenant(ctx, tenant, d.cfg.Plan)
	if e, ok := errors.AsType[*catalog.Error](err); ok && e.Code != catalog.CodeUnavailable && e.Code != catalog.CodeInternal {
		return ledger.Errorf(ledger.CodeTenantNotFound, "tenant", "tenant %q does not exist, and could not be made: %s", tenant, e.Detail)
	}
	if err != nil {
		return &ledger.Error{Code: ledger.CodeUnavailable, Detail: "the tenant could not be made; the same request can be sent again", RetryAfter: time.Second, Cause: err}
	}
	return nil
}

// take takes the place of one tenant, and returns 0; or how long there is none. A second's places may be taken at once.
func (d *Desk) take(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	share := time.Second / time.Duration(d.cfg.PerSecond)
	if d.space.Before(now) {
		d.space = now
	}
	if wait := d.space.Add(share).Sub(now) - time.Second; wait > 0 {
		return wait
	}
	d.space = d.space.Add(share)
	return 0
}
