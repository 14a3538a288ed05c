package httpapi

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/period"
)

func tenantMembers() []member[catalog.Tenant] {
	return []member[catalog.Tenant]{
		{"plan", true, func(d *document, t *catalog.Tenant) { t.Plan = d.id() }},
		{"anchor", false, func(d *document, t *catalog.Tenant) { t.Anchor = d.instant() }},
		{"timezone", false, func(d *document, t *catalog.Tenant) { t.Timezone = d.zone() }},
		{"status", false, func(d *document, t *catalog.Tenant) { t.Status = d.tenantStatus() }},
		{"metadata", false, func(d *document, t *catalog.Tenant) { t.Metadata = d.metadata() }},
		{"overrides", false, func(d *document, t *catalog.Tenant) {
			t.Overrides = map[string]int64{}
			d.overrides(func(meter string) { t.Overrides[meter] = d.integer(0, bound.MaxAmount) })
		}},
	}
}

func patchMembers() []member[catalog.TenantPatch] {
	return []member[catalog.TenantPatch]{
		{"plan", false, func(d *document, p *catalog.TenantPatch) { p.Plan = new(d.id()) }},
		{"anchor", false, func(d *document, p *catalog.TenantPatch) { p.Anchor = new(d.instant()) }},
		{"timezone", false, func(d *document, p *catalog.TenantPatch) { p.Timezone = new(d.zone()) }},
		{"status", false, func(d *document, p *catalog.TenantPatch) { p.Status = new(d.tenantStatus()) }},
		{"metadata", false, func(d *document, p *catalog.TenantPatch) { p.Metadata = d.metadata() }},
		{"apply", false, func(d *document, p *catalog.TenantPatch) { p.Apply = d.word(catalog.ApplyNow, catalog.ApplyNextPeriod) }},
		{"prorate", false, func(d *document, p *catalog.TenantPatch) { p.Prorate = d.boolean() }},
		{"overrides", false, func(d *document, p *catalog.TenantPatch) {
			p.Overrides = map[string]*int64{}
			d.overrides(func(meter string) { p.Overrides[meter] = d.integerOrNull(0, bound.MaxAmount) })
		}},
		{"reason", false, func(d *document, p *catalog.TenantPatch) { p.Reason = d.reason() }},
		{"dry_run", false, func(d *document, p *catalog.TenantPatch) { p.DryRun = d.boolean() }},
	}
}

// ofTenant is whose state an If-Match on a tenant wants.
const ofTenant = "tenant, its version"

// overrides reads an object of amounts by meter. read reads one of them.
func (d *document) overrides(read func(meter string)) {
	readMap(d, catalog.MaxOverrides, func(meter string) {
		if !bound.ID(meter) {
			d.fault(d.path(), "is not the name of a meter, which "+bound.MustBeID)
			d.skip()
			return
		}
		read(meter)
	})
}

func (d *document) zone() string {
	return d.text(isZone, mustBeZone)
}

func isZone(name string) bool {
	_, err := period.ParseZone(name)
	return err == nil
}

func (d *document) tenantStatus() string {
	return d.word(catalog.StatusActive, catalog.StatusSuspended)
}

// putTenant creates or replaces a tenant; bound to a version it only replaces.
func (s *Server) putTenant(x *exchange) error {
	id, err := x.tenantParameter()
	if err != nil {
		return err
	}
	t := catalog.Tenant{ID: id}
	if err := decode(x, &t, s.requests.tenant); err != nil {
		return err
	}
	version, err := x.ifMatch(ofTenant)
	if err != nil {
		return err
	}
	var stored catalog.Tenant
	created := false
	if version != nil {
		stored, err = s.store.ReplaceTenant(x.ctx, t, *version)
	} else {
		stored, created, err = s.store.PutTenant(x.ctx, t)
	}
	if err != nil {
		return err
	}
	x.sendETag(stored.Version)
	return x.send(putStatus(created), tenantOf(&stored))
}

// patchTenant changes what is named, or tells what that would do.
func (s *Server) patchTenant(x *exchange) error {
	id, err := x.tenantParameter()
	if err != nil {
		return err
	}
	var p catalog.TenantPatch
	if err := decode(x, &p, s.requests.patch); err != nil {
		return err
	}
	if p.IfVersion, err = x.ifMatch(ofTenant); err != nil {
		return err
	}
	change, err := s.store.PatchTenant(x.ctx, id, p)
	if err != nil {
		return err
	}
	stored := &change.After
	if p.DryRun {
		stored = &change.Before
	}
	x.sendETag(stored.Version)
	return x.send(http.StatusOK, changeOf(&change, p.DryRun))
}

// getTenant answers one tenant, from PostgreSQL: whoever has just changed it wants to see that.
func (s *Server) getTenant(x *exchange) error {
	id, err := x.tenantParameter()
	if err != nil {
		return err
	}
	t, err := s.store.Tenant(x.ctx, id)
	if err != nil {
		return err
	}
	x.sendETag(t.Version)
	return x.send(http.StatusOK, tenantOf(&t))
}

// listTenants answers a page of tenants.
func (s *Server) listTenants(x *exchange) error {
	page, err := x.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.store.ListTenants(x.ctx, page)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, wire.TenantList{Items: mapSlice(list.Items, tenantOf), NextCursor: nextCursor(list.NextCursor)})
}

// listTerms answers a page of the history of a tenant's terms.
func (s *Server) listTerms(x *exchange) error {
	tenant, err := x.tenantParameter()
	if err != nil {
		return err
	}
	page, err := x.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.store.ListTerms(x.ctx, tenant, page)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, wire.TermsList{Items: mapSlice(list.Items, termsOf), NextCursor: nextCursor(list.NextCursor)})
}

func termsOf(t *catalog.Terms) wire.Terms {
	return wire.Terms{
		EffectiveAt: t.EffectiveAt, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Overrides: t.Overrides,
		Apply: wire.TermsApply(t.Apply), Prorate: t.Prorate, Reason: t.Reason,
	}
}

func tenantOf(t *catalog.Tenant) wire.Tenant {
	return wire.Tenant{
		Tenant: t.ID, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Status: wire.TenantStatus(t.Status),
		Metadata: jsontext.Value(t.Metadata), Overrides: t.Overrides, Version: t.Version, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
	}
}

func changeOf(c *catalog.TenantChange, dryRun bool) wire.TenantChange {
	t := tenantOf(&c.After)
	return wire.TenantChange{
		Tenant: t.Tenant, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Status: t.Status, Metadata: t.Metadata,
		Overrides: t.Overrides, Version: t.Version, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Before: tenantOf(&c.Before), DryRun: dryRun,
	}
}
