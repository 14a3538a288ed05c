package httpapi

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

// ofTenant is whose state an If-Match on a tenant wants.
const ofTenant = "tenant, its version"

// putTenant creates or replaces a tenant; bound to a version it only replaces.
func (s *Server) putTenant(x *exchange) error {
	id, err := x.tenantParameter()
	if err != nil {
		return err
	}
	t := catalog.Tenant{ID: id}
	if err := x.decodeObject(&t, "tenant"); err != nil {
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
	if err := x.decodeObject(&p); err != nil {
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
