package httpapi

import (
	"fmt"
	"net/netip"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/proven"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

// enter authenticates the caller. It refuses a key that lacks the scope. It also refuses a key that is bound to a
// tenant if the route may reach other tenants. After enter, the request's context has the caller as its actor.
func (rc *request) enter(scope access.Scope, reach reach) error {
	authorization, err := rc.authorization()
	if err != nil {
		return err
	}
	address := func() netip.Addr { return rc.server.proxies.Client(rc.Request()) }
	key, err := rc.server.keys.Authenticate(rc.ctx, authorization, address, rc.started)
	if err != nil {
		return err
	}
	rc.key = key
	proven.Of(rc.Request().Context()).Note()
	actor := &auditlog.Actor{KeyID: key.ID, Name: key.Name, Tenant: key.Tenant, RequestID: rc.requestID, Admin: key.Scopes.Has(access.Admin)}
	if actor.Admin {
		actor.IP = address().String()
	}
	rc.ctx.actor = actor
	if !key.Scopes.Has(scope) {
		return &errcode.Error{Code: gate.CodeForbidden, Detail: fmt.Sprintf("this needs a key with the scope %s; this key has %s", scope, key.Scopes)}
	}
	if reach == everyTenant && key.Tenant != "" {
		return &errcode.Error{Code: gate.CodeForbidden, Detail: "the key is bound to one tenant, and this concerns others"}
	}
	return nil
}

// authorization returns the caller's key as "Bearer <key>". If a gateway sends its own key in X-Quota-Key, it returns
// this key, because the Authorization header may be the client's. Otherwise it returns the Authorization header, or
// the empty string if there is none.
func (rc *request) authorization() (string, error) {
	h := rc.Request().Header
	if keys := h[forwarded.HeaderKey]; rc.gateway != nil && len(keys) > 0 && keys[0] != "" {
		if len(keys) > 1 {
			return "", body.Refuse(forwarded.HeaderKey, "must appear once")
		}
		return "Bearer " + keys[0], nil
	}
	switch keys := h["Authorization"]; len(keys) {
	case 0:
		return "", nil
	case 1:
		return keys[0], nil
	default: // a proxy may have checked one header, and this server would check another
		set(rc.Response().Header(), "Connection", "close")
		return "", body.Refuse("Authorization", "must appear once")
	}
}

// ofTenant records the tenant of the request for the access log. It refuses a key that is bound to another tenant.
func (rc *request) ofTenant(tenant string) error {
	rc.tenant = tenant
	if rc.key == nil || rc.key.May(tenant) {
		return nil
	}
	return errOtherTenant()
}

// errOtherTenant returns the refusal of a key that is bound to another tenant. The text is the same whether or not
// that tenant exists, so that a caller cannot find out.
func errOtherTenant() error {
	return &errcode.Error{Code: gate.CodeForbidden, Detail: "the key is bound to another tenant"}
}

// closeUnknown closes the connection after the answer unless the caller has a valid key. Callers without a valid key
// must not hold connections.
func (rc *request) closeUnknown() {
	authorization, err := rc.authorization()
	if err != nil || !rc.server.keys.Knows(authorization, rc.started) {
		set(rc.Response().Header(), "Connection", "close")
	}
}

// fromAccess sets the code, the detail and the wait of the problem from a refusal of the caller's key.
func (p *problem) fromAccess(r *access.Refusal) {
	switch r.Reason {
	case access.TooMany:
		p.code, p.detail, p.retryAfter = gate.CodeRateLimited, "too many wrong keys from this address", r.RetryAfter
	case access.Undecided:
		p.code, p.detail, p.retryAfter = errcode.Unavailable, "the key is not known yet, and PostgreSQL does not answer", r.RetryAfter
	case access.Unknown:
		p.code, p.detail = codeUnauthenticated, "the key is unknown, expired or revoked"
	default:
		p.code = codeUnauthenticated
	}
}
