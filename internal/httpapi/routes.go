package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/httpapi/reference"
)

// route describes one operation of the contract.
type route struct {
	method, path string
	query        []string // the query parameters that it accepts
	members      string   // prefix of further query parameters that it accepts; empty: no others
	public       bool     // callers need no key
	scope        access.Scope
	reach        reach
	gateway      bool // called by gateways, with forwarded requests
	dev          bool // only in a server with a test clock
	handler      handler
}

// reach is the set of tenants whose data a request reaches. It decides what a key that is bound to a tenant may do. A
// test sends requests about another tenant to every route.
type reach int

const (
	everyTenant reach = iota // keys that are bound to a tenant are refused
	oneTenant                // checkIDs or the handler calls ofTenant before data is changed or returned
	ownTenant                // the handler shows only the key's tenant
	noTenant                 // no data of a tenant; for example the catalogue, which all tenants share
)

// methodAny stands for every method, because a gateway may use the method of the forwarded request.
const methodAny = "any"

// routes returns the operations in the order of openapi.yaml. A test compares the routes with that file.
func (s *Server) routes() []route {
	return append([]route{
		{method: http.MethodPost, path: "/v1/check", scope: access.Use, reach: oneTenant, handler: s.check},
		{method: http.MethodPost, path: "/v1/check/batch", scope: access.Use, reach: oneTenant, handler: s.checkBatch},
		{method: http.MethodPost, path: "/v1/consume", scope: access.Use, reach: oneTenant, handler: s.consume},
		{method: methodAny, path: "/v1/authorize/:gateway", gateway: true, scope: access.Use, reach: oneTenant, handler: s.authorize},
		{method: methodAny, path: forwarded.PrefixEnvoy + "/*", gateway: true, scope: access.Use, reach: oneTenant, handler: s.authorize},
		{method: http.MethodPost, path: "/v1/debits", scope: access.Use, reach: oneTenant, handler: s.debit},
		{method: http.MethodPost, path: "/v1/debits/batch", scope: access.Use, reach: oneTenant, handler: s.debitBatch},
		{method: http.MethodPost, path: "/v1/holds", scope: access.Use, reach: oneTenant, handler: s.hold},
		{method: http.MethodPost, path: "/v1/holds/:hold_id/capture", scope: access.Use, reach: oneTenant, handler: s.captureHold},
		{method: http.MethodPost, path: "/v1/holds/:hold_id/release", scope: access.Use, reach: oneTenant, handler: s.releaseHold},
		{method: http.MethodPost, path: "/v1/holds/:hold_id/extend", scope: access.Use, reach: oneTenant, handler: s.extendHold},
		{method: http.MethodPost, path: "/v1/refunds", scope: access.Use, reach: oneTenant, handler: s.refund},
		{method: http.MethodPost, path: "/v1/limits/charge", scope: access.Use, reach: oneTenant, handler: s.chargeLimits},
		{method: http.MethodPost, path: "/v1/limits/charge/refund", scope: access.Use, reach: oneTenant, handler: s.refundCharge},
		{method: http.MethodPost, path: "/v1/limits/charge/settle", scope: access.Use, reach: oneTenant, handler: s.settleCharge},
		{method: http.MethodPost, path: "/v1/leases", scope: access.Use, reach: oneTenant, handler: s.acquireLease},
		{method: http.MethodPost, path: "/v1/leases/:lease_id/renew", scope: access.Use, reach: oneTenant, handler: s.renewLease},
		{method: http.MethodDelete, path: "/v1/leases/:lease_id", scope: access.Use, reach: oneTenant, handler: s.releaseLease},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/balances", query: []string{"subject", "as_of"}, scope: access.Read, reach: oneTenant, handler: s.listBalances},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/balances/:meter", query: []string{"subject", "as_of"}, scope: access.Read, reach: oneTenant, handler: s.getBalance},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/entries", query: []string{"meter", "subject", "kind", "from", "to", "order", "limit", "cursor"}, scope: access.Read, reach: oneTenant, handler: s.listEntries},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/operations/:operation_id", query: []string{"at"}, scope: access.Read, reach: oneTenant, handler: s.getOperation},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/periods", query: []string{"meter", "next"}, scope: access.Read, reach: oneTenant, handler: s.listPeriods},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/statements", query: []string{"meter", "subject", "limit", "cursor"}, scope: access.Read, reach: oneTenant, handler: s.listStatements},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/statements/:meter/:period_start", query: []string{"subject", "format"}, scope: access.Read, reach: oneTenant, handler: s.getStatement},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/usage", query: []string{"meter", "subject", "from", "to", "by", "group_by", "timezone"}, scope: access.Read, reach: oneTenant, handler: s.usage},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/denials", query: []string{"from", "to", "limit"}, scope: access.Read, reach: oneTenant, handler: s.listDenials},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/grants", query: []string{"meter", "status", "limit", "cursor"}, scope: access.Read, reach: oneTenant, handler: s.listGrants},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/holds", query: []string{"status", "limit", "cursor"}, scope: access.Read, reach: oneTenant, handler: s.listHolds},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/holds/:hold_id", scope: access.Read, reach: oneTenant, handler: s.getHold},
		{method: http.MethodPost, path: "/v1/tenants/:tenant/grants", scope: access.Admin, reach: oneTenant, handler: s.grant},
		{method: http.MethodPost, path: "/v1/tenants/:tenant/grants/:grant_id/void", scope: access.Admin, reach: oneTenant, handler: s.voidGrant},
		{method: http.MethodPost, path: "/v1/tenants/:tenant/grants/:grant_id/extend", scope: access.Admin, reach: oneTenant, handler: s.extendGrant},
		{method: http.MethodPost, path: "/v1/tenants/:tenant/adjustments", scope: access.Admin, reach: oneTenant, handler: s.adjust},
		{method: http.MethodGet, path: "/v1/meters", query: []string{"limit", "cursor"}, scope: access.Read, reach: noTenant, handler: s.listMeters},
		{method: http.MethodPut, path: "/v1/meters/:meter", scope: access.Admin, handler: s.putMeter},
		{method: http.MethodGet, path: "/v1/meters/:meter", scope: access.Read, reach: noTenant, handler: s.getMeter},
		{method: http.MethodDelete, path: "/v1/meters/:meter", scope: access.Admin, handler: s.deleteMeter},
		{method: http.MethodGet, path: "/v1/plans", query: []string{"limit", "cursor"}, scope: access.Read, reach: noTenant, handler: s.listPlans},
		{method: http.MethodPut, path: "/v1/plans/:plan", scope: access.Admin, handler: s.putPlan},
		{method: http.MethodGet, path: "/v1/plans/:plan", scope: access.Read, reach: noTenant, handler: s.getPlan},
		{method: http.MethodGet, path: "/v1/tenants", query: []string{"prefix", "plan", "status", "near", "meter", "sort", "limit", "cursor"}, members: metadataMembers, scope: access.Read, reach: ownTenant, handler: s.listTenants},
		{method: http.MethodPut, path: "/v1/tenants/:tenant", scope: access.Admin, reach: oneTenant, handler: s.putTenant},
		{method: http.MethodPatch, path: "/v1/tenants/:tenant", scope: access.Admin, reach: oneTenant, handler: s.patchTenant},
		{method: http.MethodGet, path: "/v1/tenants/:tenant", scope: access.Read, reach: oneTenant, handler: s.getTenant},
		{method: http.MethodDelete, path: "/v1/tenants/:tenant/pending", scope: access.Admin, reach: oneTenant, handler: s.deletePending},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/gauges", query: []string{"meter", "limit", "cursor"}, scope: access.Read, reach: oneTenant, handler: s.listGauges},
		{method: http.MethodPut, path: "/v1/tenants/:tenant/gauges/:meter", query: []string{"subject"}, scope: access.Use, reach: oneTenant, handler: s.setGauge},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/gauges/:meter", query: []string{"subject"}, scope: access.Read, reach: oneTenant, handler: s.getGauge},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/gauges/:meter/entries", query: []string{"subject", "limit", "cursor"}, scope: access.Read, reach: oneTenant, handler: s.listGaugeEntries},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/features", scope: access.Read, reach: oneTenant, handler: s.getFeatures},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/terms", query: []string{"limit", "cursor"}, scope: access.Read, reach: oneTenant, handler: s.listTerms},
		{method: http.MethodGet, path: "/v1/limits", query: []string{"limit", "cursor"}, scope: access.Read, reach: ownTenant, handler: s.listLimits},
		{method: http.MethodPut, path: "/v1/limits/:rule", scope: access.Admin, handler: s.putLimit},
		{method: http.MethodGet, path: "/v1/limits/:rule", query: []string{"explain", "tenant", "subject", "plan"}, scope: access.Read, reach: ownTenant, handler: s.getLimit},
		{method: http.MethodDelete, path: "/v1/limits/:rule", scope: access.Admin, handler: s.deleteLimit},
		{method: http.MethodPost, path: "/v1/limits/:rule/reset", scope: access.Admin, reach: oneTenant, handler: s.resetLimit},
		{method: http.MethodGet, path: "/v1/limits/:rule/state", query: []string{"tenant", "subject", "route", "ip"}, scope: access.Read, reach: oneTenant, handler: s.limitState},
		{method: http.MethodGet, path: "/v1/limits/:rule/top", query: []string{"limit"}, scope: access.Read, handler: s.limitTop},
		{method: http.MethodGet, path: "/v1/limits/:rule/shadow", scope: access.Read, handler: s.limitShadow},
		{method: http.MethodGet, path: "/v1/limits/:rule/overrides", query: []string{"limit", "cursor"}, scope: access.Read, reach: ownTenant, handler: s.listOverrides},
		{method: http.MethodPut, path: "/v1/limits/:rule/overrides/:tenant", scope: access.Admin, reach: oneTenant, handler: s.putOverride},
		{method: http.MethodGet, path: "/v1/limits/:rule/overrides/:tenant", scope: access.Read, reach: oneTenant, handler: s.getOverride},
		{method: http.MethodDelete, path: "/v1/limits/:rule/overrides/:tenant", scope: access.Admin, reach: oneTenant, handler: s.deleteOverride},
		{method: http.MethodPut, path: "/v1/limits/:rule/overrides/:tenant/:subject", scope: access.Admin, reach: oneTenant, handler: s.putOverride},
		{method: http.MethodGet, path: "/v1/limits/:rule/overrides/:tenant/:subject", scope: access.Read, reach: oneTenant, handler: s.getOverride},
		{method: http.MethodDelete, path: "/v1/limits/:rule/overrides/:tenant/:subject", scope: access.Admin, reach: oneTenant, handler: s.deleteOverride},
		{method: http.MethodGet, path: "/v1/blocks", query: []string{"limit", "cursor"}, scope: access.Admin, reach: ownTenant, handler: s.listBlocks},
		{method: http.MethodPut, path: "/v1/blocks/:kind/:value", scope: access.Admin, reach: oneTenant, handler: s.putBlock},
		{method: http.MethodGet, path: "/v1/blocks/:kind/:value", query: []string{"tenant"}, scope: access.Admin, reach: oneTenant, handler: s.getBlock},
		{method: http.MethodDelete, path: "/v1/blocks/:kind/:value", query: []string{"tenant"}, scope: access.Admin, reach: oneTenant, handler: s.deleteBlock},
		{method: http.MethodPut, path: "/v1/blocks/:kind/:value/:bits", scope: access.Admin, reach: oneTenant, handler: s.putBlock},
		{method: http.MethodGet, path: "/v1/blocks/:kind/:value/:bits", query: []string{"tenant"}, scope: access.Admin, reach: oneTenant, handler: s.getBlock},
		{method: http.MethodDelete, path: "/v1/blocks/:kind/:value/:bits", query: []string{"tenant"}, scope: access.Admin, reach: oneTenant, handler: s.deleteBlock},
	}, s.jobRoutes()...)
}

// jobRoutes returns the operations for jobs, proofs and keys.
func (s *Server) jobRoutes() []route {
	return append([]route{
		{method: http.MethodPost, path: "/v1/rolls", scope: access.Admin, handler: s.startRoll},
		{method: http.MethodGet, path: "/v1/rolls/:roll_id", scope: access.Admin, handler: s.getRoll},
		{method: http.MethodPost, path: "/v1/verifications", scope: access.Admin, reach: oneTenant, handler: s.startVerification},
		{method: http.MethodGet, path: "/v1/verifications", query: []string{"tenant", "limit", "cursor"}, scope: access.Admin, reach: ownTenant, handler: s.listVerifications},
		{method: http.MethodGet, path: "/v1/verifications/:verification_id", scope: access.Admin, reach: oneTenant, handler: s.getVerification},
		{method: http.MethodGet, path: "/v1/seals", query: []string{"limit", "cursor"}, scope: access.Read, handler: s.listSeals},
		{method: http.MethodGet, path: "/v1/seals/:day", scope: access.Read, handler: s.getSeal},
		{method: http.MethodGet, path: "/v1/status", scope: access.Read, handler: s.getStatus},
		{method: http.MethodPost, path: "/v1/portal-sessions", scope: access.Admin, reach: oneTenant, handler: s.createPortalSession},
		{method: http.MethodDelete, path: "/v1/tenants/:tenant/portal-sessions", scope: access.Admin, reach: oneTenant, handler: s.endPortalSessions},
		{method: http.MethodGet, path: "/v1/keys", query: []string{"limit", "cursor"}, scope: access.Admin, reach: ownTenant, handler: s.listKeys},
		{method: http.MethodPost, path: "/v1/keys", scope: access.Admin, reach: oneTenant, handler: s.createKey},
		{method: http.MethodGet, path: "/v1/keys/:key_id", scope: access.Admin, reach: oneTenant, handler: s.getKey},
		{method: http.MethodDelete, path: "/v1/keys/:key_id", scope: access.Admin, reach: oneTenant, handler: s.revokeKey},
		{method: http.MethodPost, path: "/v1/keys/:key_id/rotate", scope: access.Admin, reach: oneTenant, handler: s.rotateKey},
		{method: http.MethodGet, path: "/v1/audit", query: []string{"tenant", "actor", "action", "from", "to", "limit", "cursor"}, scope: access.Admin, reach: ownTenant, handler: s.listAudit},
	}, slices.Concat(s.eventRoutes(), s.toolRoutes())...)
}

// eventRoutes returns the operations for events and webhooks.
func (s *Server) eventRoutes() []route {
	return []route{
		{method: http.MethodGet, path: "/v1/events", query: []string{"tenant", "type", "after", "limit", "cursor"}, scope: access.Read, reach: ownTenant, handler: s.listEvents},
		{method: http.MethodGet, path: "/v1/webhooks", query: []string{"limit", "cursor"}, scope: access.Admin, reach: ownTenant, handler: s.listWebhooks},
		{method: http.MethodPost, path: "/v1/webhooks", scope: access.Admin, reach: oneTenant, handler: s.createWebhook},
		{method: http.MethodGet, path: "/v1/webhooks/:webhook_id", scope: access.Admin, reach: oneTenant, handler: s.getWebhook},
		{method: http.MethodPatch, path: "/v1/webhooks/:webhook_id", scope: access.Admin, reach: oneTenant, handler: s.patchWebhook},
		{method: http.MethodDelete, path: "/v1/webhooks/:webhook_id", scope: access.Admin, reach: oneTenant, handler: s.deleteWebhook},
		{method: http.MethodPost, path: "/v1/webhooks/:webhook_id/test", scope: access.Admin, reach: oneTenant, handler: s.testWebhook},
		{method: http.MethodPost, path: "/v1/webhooks/:webhook_id/rotate", scope: access.Admin, reach: oneTenant, handler: s.rotateWebhook},
		{method: http.MethodPost, path: "/v1/webhooks/:webhook_id/replay", scope: access.Admin, reach: oneTenant, handler: s.replayWebhook},
		{method: http.MethodGet, path: "/v1/webhooks/:webhook_id/deliveries", query: []string{"status", "limit", "cursor"}, scope: access.Admin, reach: oneTenant, handler: s.listDeliveries},
	}
}

// toolRoutes returns the operations for the catalogue as a whole, the test clock, and the contract.
func (s *Server) toolRoutes() []route {
	return []route{
		{method: http.MethodGet, path: "/v1/catalog", scope: access.Admin, handler: s.exportCatalog},
		{method: http.MethodPost, path: "/v1/catalog", scope: access.Admin, handler: s.applyCatalog},
		{method: http.MethodGet, path: "/v1/test/clock", dev: true, scope: access.Read, reach: noTenant, handler: s.getTestClock},
		{method: http.MethodPost, path: "/v1/test/clock", dev: true, scope: access.Admin, handler: s.advanceTestClock},
		{method: http.MethodGet, path: "/v1/openapi.yaml", public: true, handler: document(s.reference.YAML)},
		{method: http.MethodGet, path: "/v1/openapi.json", public: true, handler: document(s.reference.JSON)},
	}
}

// pages returns the routes of pages that are not in the contract.
func (s *Server) pages() []route {
	return []route{
		{method: http.MethodGet, path: "/docs", public: true, handler: document(s.reference.Page)},
		{method: http.MethodGet, path: reference.ViewerPath, public: true, handler: document(s.reference.Viewer)},
	}
}

// idParameters returns the names of those path parameters that must be ids. Handlers check all other parameters. They
// also check the parameters of an override, because these need other error texts.
func idParameters(path string) []string {
	others := []string{"gateway", "operation_id", "period_start", "lease_id", "kind", "value", "bits", "day"}
	path, _, _ = strings.Cut(path, "/overrides/")
	var names []string
	for segment := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(segment, ":"); ok && !slices.Contains(others, name) {
			names = append(names, name)
		}
	}
	return names
}

// guard returns the handler of route r. Before it calls r.handler, it does what all operations need: it authenticates
// the caller, and it checks the query parameters and the ids in the path.
func (s *Server) guard(r route) echo.HandlerFunc {
	ids := idParameters(r.path)
	return func(c echo.Context) error {
		rc := c.(*request)
		if r.gateway {
			if err := rc.enterGateway(); err != nil {
				return err
			}
		}
		if r.public {
			rc.closeUnknown()
		} else if err := rc.enter(r.scope, r.reach); err != nil {
			return err
		}
		if raw := rc.Request().URL.RawQuery; raw != "" && (rc.gateway == nil || !rc.gateway.HasQuery()) {
			if err := rc.query.parse(raw, r.query, r.members); err != nil {
				return err
			}
		}
		if err := rc.checkIDs(ids); err != nil {
			return err
		}
		return r.handler(rc)
	}
}

// document returns a handler that sends document d.
func document(d *reference.Document) handler {
	return func(rc *request) error { return d.Serve(rc.Response(), rc.Request()) }
}
