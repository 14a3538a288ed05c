package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

// route is one operation of the contract.
type route struct {
	method, path string
	query        []string // its query parameters
	public       bool     // needs no key
	gateway      bool     // for gateways, about forwarded requests
	handler      handler
}

// methodAny stands for all methods: gateways use the method of the forwarded request.
const methodAny = "any"

// routes returns the operations in the order of openapi.yaml. A test compares the two.
func (s *Server) routes() []route {
	return []route{
		{method: http.MethodPost, path: "/v1/check", handler: s.check},
		{method: http.MethodPost, path: "/v1/consume", handler: s.consume},
		{method: methodAny, path: "/v1/authorize/:gateway", gateway: true, handler: s.authorize},
		{method: methodAny, path: prefixEnvoy + "/*", gateway: true, handler: s.authorize},
		{method: http.MethodPost, path: "/v1/debits", handler: s.debit},
		{method: http.MethodPost, path: "/v1/debits/batch", handler: s.debitBatch},
		{method: http.MethodPost, path: "/v1/holds", handler: s.hold},
		{method: http.MethodPost, path: "/v1/holds/:hold_id/capture", handler: s.captureHold},
		{method: http.MethodPost, path: "/v1/holds/:hold_id/release", handler: s.releaseHold},
		{method: http.MethodPost, path: "/v1/holds/:hold_id/extend", handler: s.extendHold},
		{method: http.MethodPost, path: "/v1/refunds", handler: s.refund},
		{method: http.MethodPost, path: "/v1/leases", handler: s.acquireLease},
		{method: http.MethodPost, path: "/v1/leases/:lease_id/renew", handler: s.renewLease},
		{method: http.MethodDelete, path: "/v1/leases/:lease_id", handler: s.releaseLease},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/balances", query: []string{"subject", "as_of"}, handler: s.listBalances},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/balances/:meter", query: []string{"subject", "as_of"}, handler: s.getBalance},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/entries", query: []string{"meter", "subject", "kind", "from", "to", "order", "limit", "cursor"}, handler: s.listEntries},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/operations/:operation_id", query: []string{"at"}, handler: s.getOperation},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/periods", query: []string{"meter", "next"}, handler: s.listPeriods},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/statements", query: []string{"meter", "subject", "limit", "cursor"}, handler: s.listStatements},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/statements/:meter/:period_start", query: []string{"subject", "format"}, handler: s.getStatement},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/usage", query: []string{"meter", "subject", "from", "to", "by", "group_by", "timezone"}, handler: s.usage},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/grants", query: []string{"meter", "status", "limit", "cursor"}, handler: s.listGrants},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/holds", query: []string{"status", "limit", "cursor"}, handler: s.listHolds},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/holds/:hold_id", handler: s.getHold},
		{method: http.MethodPost, path: "/v1/tenants/:tenant/grants", handler: s.grant},
		{method: http.MethodPost, path: "/v1/tenants/:tenant/grants/:grant_id/void", handler: s.voidGrant},
		{method: http.MethodPost, path: "/v1/tenants/:tenant/adjustments", handler: s.adjust},
		{method: http.MethodGet, path: "/v1/meters", query: []string{"limit", "cursor"}, handler: s.listMeters},
		{method: http.MethodPut, path: "/v1/meters/:meter", handler: s.putMeter},
		{method: http.MethodGet, path: "/v1/meters/:meter", handler: s.getMeter},
		{method: http.MethodDelete, path: "/v1/meters/:meter", handler: s.deleteMeter},
		{method: http.MethodGet, path: "/v1/plans", query: []string{"limit", "cursor"}, handler: s.listPlans},
		{method: http.MethodPut, path: "/v1/plans/:plan", handler: s.putPlan},
		{method: http.MethodGet, path: "/v1/plans/:plan", handler: s.getPlan},
		{method: http.MethodGet, path: "/v1/tenants", query: []string{"limit", "cursor"}, handler: s.listTenants},
		{method: http.MethodPut, path: "/v1/tenants/:tenant", handler: s.putTenant},
		{method: http.MethodPatch, path: "/v1/tenants/:tenant", handler: s.patchTenant},
		{method: http.MethodGet, path: "/v1/tenants/:tenant", handler: s.getTenant},
		{method: http.MethodGet, path: "/v1/tenants/:tenant/terms", query: []string{"limit", "cursor"}, handler: s.listTerms},
		{method: http.MethodGet, path: "/v1/limits", query: []string{"limit", "cursor"}, handler: s.listLimits},
		{method: http.MethodPut, path: "/v1/limits/:rule", handler: s.putLimit},
		{method: http.MethodGet, path: "/v1/limits/:rule", query: []string{"explain", "tenant"}, handler: s.getLimit},
		{method: http.MethodDelete, path: "/v1/limits/:rule", handler: s.deleteLimit},
		{method: http.MethodPost, path: "/v1/limits/:rule/reset", handler: s.resetLimit},
		{method: http.MethodGet, path: "/v1/blocks", query: []string{"limit", "cursor"}, handler: s.listBlocks},
		{method: http.MethodPut, path: "/v1/blocks/:kind/:value", handler: s.putBlock},
		{method: http.MethodGet, path: "/v1/blocks/:kind/:value", query: []string{"tenant"}, handler: s.getBlock},
		{method: http.MethodDelete, path: "/v1/blocks/:kind/:value", query: []string{"tenant"}, handler: s.deleteBlock},
		{method: http.MethodPut, path: "/v1/blocks/:kind/:value/:bits", handler: s.putBlock},
		{method: http.MethodGet, path: "/v1/blocks/:kind/:value/:bits", query: []string{"tenant"}, handler: s.getBlock},
		{method: http.MethodDelete, path: "/v1/blocks/:kind/:value/:bits", query: []string{"tenant"}, handler: s.deleteBlock},
		{method: http.MethodPost, path: "/v1/rolls", handler: s.startRoll},
		{method: http.MethodGet, path: "/v1/rolls/:roll_id", handler: s.getRoll},
		{method: http.MethodPost, path: "/v1/verifications", handler: s.startVerification},
		{method: http.MethodGet, path: "/v1/verifications/:verification_id", handler: s.getVerification},
		{method: http.MethodGet, path: "/v1/seals", query: []string{"limit", "cursor"}, handler: s.listSeals},
		{method: http.MethodGet, path: "/v1/seals/:day", handler: s.getSeal},
		{method: http.MethodGet, path: "/v1/openapi.yaml", public: true, handler: s.getSpec},
	}
}

// guard returns the handler of r behind what all operations share: authentication and the check of query parameters.
func (s *Server) guard(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		rc := c.(*request)
		if r.gateway {
			if err := rc.enterGateway(); err != nil {
				return err
			}
		}
		if !r.public {
			if err := s.keys.authenticate(rc.authorization()); err != nil {
				return err
			}
		}
		if raw := rc.Request().URL.RawQuery; raw != "" && !rc.hasForwardedQuery() {
			if err := rc.query.parse(raw, r.query); err != nil {
				return err
			}
		}
		return r.handler(rc)
	}
}

// getSpec serves the contract.
func (s *Server) getSpec(rc *request) error {
	return rc.sendBytes(http.StatusOK, "application/yaml", wire.Specification)
}

// keys authenticates callers. There is one key, which may do everything. It is kept hashed, so that neither a memory dump
// nor the time of a comparison reveals it.
type keys struct {
	admin atomic.Pointer[[sha256.Size]byte]
}

func newKeys(adminKey string) (*keys, error) {
	k := &keys{}
	return k, k.set(adminKey)
}

// set replaces the key, from the next request on.
func (k *keys) set(adminKey string) error {
	if !bound.AdminKey(adminKey) {
		return errors.New("the admin key " + bound.MustBeAdminKey)
	}
	hash := sha256.Sum256([]byte(adminKey))
	k.admin.Store(&hash)
	return nil
}

// authenticate checks an Authorization header.
func (k *keys) authenticate(authorization string) error {
	scheme, key, _ := strings.Cut(authorization, " ")
	given := sha256.Sum256([]byte(strings.TrimLeft(key, " ")))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(given[:], k.admin.Load()[:]) != 1 {
		return newRefusal(codeUnauthenticated)
	}
	return nil
}
