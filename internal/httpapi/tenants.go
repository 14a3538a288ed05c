package httpapi

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/report/tenantlist"
)

// metadataMembers is the prefix of those query parameters that filter by a member of metadata.
const metadataMembers = "metadata."

// ofTenant is the argument of ifMatch for a tenant. It names the state of a tenant in errors.
const ofTenant = "tenant, its version"

// putTenant creates or replaces the tenant in the path. With If-Match it only replaces a tenant.
func (s *Server) putTenant(rc *request) error {
	t := catalog.Tenant{ID: rc.tenant}
	if err := rc.decodeObject(&t, "tenant"); err != nil {
		return err
	}
	version, err := rc.ifMatch(ofTenant)
	if err != nil {
		return err
	}
	var stored catalog.Tenant
	created := false
	if version != nil {
		stored, err = s.store.ReplaceTenant(rc.ctx, t, *version)
	} else {
		stored, created, err = s.store.PutTenant(rc.ctx, t)
	}
	if err != nil {
		return err
	}
	rc.sendETag(stored.Version)
	return s.sendTenant(rc, createdStatus(created), &stored)
}

// patchTenant changes the given fields. In a dry run it changes nothing and answers with the changes.
func (s *Server) patchTenant(rc *request) error {
	var p catalog.TenantPatch
	err := rc.decodeObject(&p)
	if err != nil {
		return err
	}
	if p.IfVersion, err = rc.ifMatch(ofTenant); err != nil {
		return err
	}
	if p.Key, err = rc.idempotencyKey(); err != nil {
		return err
	}
	change, err := s.store.PatchTenant(rc.ctx, rc.tenant, p)
	if err != nil {
		return err
	}
	stored := &change.After
	if p.DryRun {
		stored = &change.Before
	}
	rc.sendETag(stored.Version)
	rc.markReplayed(change.Replayed)
	return rc.send(http.StatusOK, answers.TenantChange(&change, p.DryRun))
}

// deletePending takes back the change of a tenant that waits.
func (s *Server) deletePending(rc *request) error {
	return rc.sendNoContent(s.store.DeletePending(rc.ctx, rc.tenant))
}

// sendTenant answers with a tenant.
func (s *Server) sendTenant(rc *request, status int, t *catalog.Tenant) error {
	versions, err := s.store.PlanVersions(rc.ctx, t)
	if err != nil {
		return err
	}
	return rc.send(status, answers.Tenant(t, versions.Of(t)))
}

// getTenant answers with the tenant in the path. It reads PostgreSQL, because a client that has just changed the
// tenant must see the change.
func (s *Server) getTenant(rc *request) error {
	t, err := s.store.Tenant(rc.ctx, rc.tenant)
	if err != nil {
		return err
	}
	rc.sendETag(t.Version)
	return s.sendTenant(rc, http.StatusOK, &t)
}

// getFeatures answers with the features that a tenant has now. It reads them from memory, like a check.
func (s *Server) getFeatures(rc *request) error {
	plan, all, own, err := s.gate.Features(rc.ctx, rc.tenant)
	if err != nil {
		return err
	}
	out := client.TenantFeatures{Tenant: rc.tenant, Plan: plan, Features: answers.Features(all), Overridden: slices.AppendSeq([]string{}, maps.Keys(own))}
	if slices.Sort(out.Overridden); out.Features == nil {
		out.Features = client.Features{}
	}
	return rc.send(http.StatusOK, out)
}

// listTenants answers with a page of all tenants, or of the tenants that the filters select.
func (s *Server) listTenants(rc *request) error {
	page, err := rc.catalogPage()
	q := tenantlist.Query{
		Plan: rc.query.id("plan"), Status: rc.query.word("status", catalog.StatusActive, catalog.StatusSuspended), Meter: rc.query.id("meter"),
		ByRemaining: rc.query.word("sort", "tenant", "remaining") == "remaining", Tenant: page.Tenant, Limit: page.Limit, Cursor: page.Cursor,
	}
	if rc.query.values.Has("near") {
		q.Near = new(int(rc.query.integer("near", 0, 100, 0)))
	}
	for name, values := range rc.query.values {
		if member, ok := strings.CutPrefix(name, metadataMembers); ok {
			if q.Metadata == nil {
				q.Metadata = map[string]string{}
			}
			q.Metadata[member] = values[0]
		}
	}
	if page.Prefix = rc.query.name("prefix"); page.Prefix != "" && q.Filters() {
		rc.query.faults.Add("prefix", "must not be given together with plan, status, metadata, near, meter or sort=remaining")
	}
	if err = cmp.Or(err, rc.query.err()); err != nil {
		return err
	}
	var found tenantlist.Page
	if q.Filters() {
		found, err = s.tenantLists.List(rc.reporting(), q)
	} else {
		var list listing.Page[catalog.Tenant]
		list, err = s.store.ListTenants(rc.ctx, page)
		found.Items = answers.Map(list.Items, func(t *catalog.Tenant) tenantlist.Item { return tenantlist.Item{Tenant: *t} })
		found.NextCursor = list.NextCursor
	}
	if err != nil {
		return err
	}
	versions, err := s.store.PlanVersions(rc.ctx, answers.Map(found.Items, func(i *tenantlist.Item) *catalog.Tenant { return &i.Tenant })...)
	return sendPage(rc, found.Items, found.NextCursor, err, func(i *tenantlist.Item) client.Tenant {
		return answers.TenantWithBalance(i, versions)
	})
}

// listTerms answers with a page of a tenant's terms, including terms that have ended.
func (s *Server) listTerms(rc *request) error {
	page, err := rc.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.store.ListTerms(rc.ctx, rc.tenant, page)
	return sendPage(rc, list.Items, list.NextCursor, err, answers.Terms)
}
