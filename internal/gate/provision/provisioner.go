package provision

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// DefaultPerSecond is the default of Config.PerSecond. It allows 180,000 sign-ups an hour, and bounds the rows that
// requests with invented tenant ids can insert.
const DefaultPerSecond = 50

// Config configures a Provisioner.
type Config struct {
	Plan      string                       // plan of the created tenants. Required
	PerSecond int                          // tenants that this instance creates a second; 0: DefaultPerSecond
	Clock     interface{ Now() time.Time } // the ledger's clock. Required
}

// Provisioner creates tenants on their first use. A nil Provisioner creates no tenants.
type Provisioner struct {
	cfg      Config
	catalog  *catalog.Catalog
	creating singleflight.Group // running creations, by tenant

	mu       sync.Mutex
	nextFree time.Time // when a steady rate of creations would allow the next tenant
}

// New returns a provisioner.
func New(c *catalog.Catalog, cfg Config) *Provisioner {
	if cfg.PerSecond <= 0 {
		cfg.PerSecond = DefaultPerSecond
	}
	return &Provisioner{cfg: cfg, catalog: c}
}

// Plan returns the plan that the tenant id gets on its first use. ok is false if a first use cannot create the
// tenant: p is nil, the default plan does not exist, or id is not valid.
func (p *Provisioner) Plan(id string) (plan *catalog.Plan, ok bool) {
	if p == nil || !bound.Name(id) {
		return nil, false
	}
	plan = p.catalog.Snapshot().Plans[p.cfg.Plan]
	return plan, plan != nil
}

// Missing returns an error if the default plan does not exist, because then no tenant is created.
func (p *Provisioner) Missing() error {
	if p == nil || p.catalog.Snapshot().Plans[p.cfg.Plan] != nil {
		return nil
	}
	return fmt.Errorf("the default plan %q does not exist: no tenant is made on its first use", p.cfg.Plan)
}

// EnsureTenant creates the tenant of a first use if the plan allows the use. Otherwise it returns the refusal of the
// use. If EnsureTenant returns nil, the tenant exists, and the ledger must decide the use.
func (p *Provisioner) EnsureTenant(ctx context.Context, use ledger.Operation) error {
	if err := use.Validate(); err != nil {
		return err
	}
	if _, err := p.DryRun(use); err != nil {
		return err
	}
	tenant := use.ID().Tenant
	_, err, _ := p.creating.Do(tenant, func() (any, error) {
		return nil, p.create(context.WithoutCancel(ctx), tenant)
	})
	return err
}

// DryRun decides a first use on an empty ledger, and changes nothing. It returns the ledger's answer or the refusal.
func (p *Provisioner) DryRun(use ledger.Operation) (answer any, err error) {
	empty, err := p.emptyLedger(use.ID().Tenant)
	if err != nil {
		return nil, err
	}
	call := ledger.NewCall(use)
	if err := empty.decide(call, use.Demand(&ledger.Located{})); err != nil {
		return nil, err
	}
	return call.Answer, call.Err
}

// Check answers a check on an empty ledger.
func (p *Provisioner) Check(tenant, subject string, items []ledger.Item) (*ledger.CheckResult, error) {
	empty, err := p.emptyLedger(tenant)
	if err != nil {
		return nil, err
	}
	return empty.check(&ledger.CheckRequest{Tenant: tenant, Subject: subject, Items: items})
}

// emptyLedger returns an empty ledger for a tenant that is created now. The error is an *errcode.Error if a first use
// cannot create the tenant, for example because the plan was just deleted.
func (p *Provisioner) emptyLedger(tenant string) (*emptyLedger, error) {
	plan, ok := p.Plan(tenant)
	if !ok {
		return nil, errcode.Errorf(errcode.TenantNotFound, "tenant", "tenant %q does not exist", tenant)
	}
	return newEmptyLedger(p.catalog.Snapshot(), plan, p.cfg.Clock.Now()), nil
}

// create creates the tenant in the catalogue.
func (p *Provisioner) create(ctx context.Context, tenant string) error {
	if wait := p.take(time.Now()); wait > 0 {
		return &errcode.Error{
			Code: errcode.QueueFull, RetryAfter: max(wait, time.Second),
			Detail: fmt.Sprintf("more than %d tenants a second are new; this attempt did nothing", p.cfg.PerSecond),
		}
	}
	err := p.catalog.MakeTenant(ctx, tenant, p.cfg.Plan)
	e, refused := errors.AsType[*errcode.Error](err)
	if refused && e.Code != errcode.Unavailable && e.Code != errcode.Internal {
		const detail = "tenant %q does not exist, and could not be made: %s"
		return errcode.Errorf(errcode.TenantNotFound, "tenant", detail, tenant, e.Detail)
	}
	if err != nil {
		return &errcode.Error{
			Code: errcode.Unavailable, Detail: "the tenant could not be made; the same request can be sent again",
			RetryAfter: time.Second, Cause: err,
		}
	}
	return nil
}

// take counts one tenant against Config.PerSecond and returns 0. If there is no room, it returns the time until a
// tenant may be created. All tenants of a second may be created at the same time.
func (p *Provisioner) take(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	share := time.Second / time.Duration(p.cfg.PerSecond)
	if p.nextFree.Before(now) {
		p.nextFree = now
	}
	if wait := p.nextFree.Add(share).Sub(now) - time.Second; wait > 0 {
		return wait
	}
	p.nextFree = p.nextFree.Add(share)
	return 0
}
