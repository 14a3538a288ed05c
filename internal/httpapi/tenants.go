package httpapi

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/period"
)

func tenantMembers() []member[catalog.Tenant] {
	return []member[catalog.Tenant]{
		{"plan", true, func(d *document, t *catalog.Tenant) { t.Plan = d.id() }},
		{"anchor", false, func(d *document, t *catalog.Tenant) { t.Anchor = d.instant() }},
		{"timezone", false, func(d *document, t *catalog.Tenant) { t.Timezone = d.zone() }},
		{"status", false, func(d *document, t *catalog.Tenant) { t.Status = d.tenantStatus() }},
		{"metadata", false, func(d *document, t *catalog.Tenant) { t.Metadata = d.metadata() }},
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
	}
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

// putTenant creates or replaces a tenant.
func (s *Server) putTenant(x *exchange) error {
	id, err := x.tenantParameter()
	if err != nil {
		return err
	}
	t := catalog.Tenant{ID: id}
	if err := decode(x, &t, s.requests.tenant); err != nil {
		return err
	}
	stored, created, err := s.store.PutTenant(x.ctx, t)
	if err != nil {
		return err
	}
	return x.send(putStatus(created), tenantOf(&stored))
}

// patchTenant changes what is named.
func (s *Server) patchTenant(x *exchange) error {
	id, err := x.tenantParameter()
	if err != nil {
		return err
	}
	var p catalog.TenantPatch
	if err := decode(x, &p, s.requests.patch); err != nil {
		return err
	}
	change, err := s.store.PatchTenant(x.ctx, id, p)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, tenantOf(&change.After))
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
	return x.send(http.StatusOK, TenantList{Items: mapSlice(list.Items, tenantOf), NextCursor: nextCursor(list.NextCursor)})
}

func tenantOf(t *catalog.Tenant) Tenant {
	return Tenant{
		Tenant: t.ID, Plan: t.Plan, Anchor: t.Anchor, Timezone: t.Timezone, Status: TenantStatus(t.Status),
		Metadata: jsontext.Value(t.Metadata), CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
	}
}
