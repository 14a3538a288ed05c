package httpapi

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// enterGateway determines which kind of gateway sent the request. It runs before the authentication, so that a
// refused key is answered in the form that this gateway needs.
func (rc *request) enterGateway() error {
	name := rc.parameter("gateway")
	if rc.Path() == forwarded.PrefixEnvoy+"/*" {
		name = forwarded.Envoy
	}
	if rc.gateway = rc.server.gateways[name]; rc.gateway == nil {
		return &errcode.Error{Code: errcode.NotFound, Detail: "unknown gateway; supported are nginx, haproxy, traefik, envoy"}
	}
	set(rc.Response().Header(), headerExpose, forwarded.Exposed)
	return nil
}

// authorize decides whether a request may pass a gateway. The gateway's header X-Quota-Mode selects the action:
// consume, check, charge limits only, or acquire a lease. A preflight passes without any action.
func (s *Server) authorize(rc *request) error {
	f, err := rc.readForwarded()
	if err != nil {
		return err
	}
	switch {
	case f.Preflight:
	case f.Mode == forwarded.ModeCheck:
		err = s.checkForwarded(rc)
	case f.Mode == forwarded.ModeLimit:
		err = s.chargeForwarded(rc, f.Amount)
	case f.Mode == forwarded.ModeLease:
		err = s.leaseForwarded(rc, f.Rule)
	default:
		err = s.consumeForwarded(rc)
	}
	if err != nil {
		return err
	}
	set(rc.Response().Header(), "Content-Length", "0")
	rc.Response().WriteHeader(http.StatusOK)
	return nil
}

func (s *Server) checkForwarded(rc *request) error {
	answer, err := s.gate.Check(rc.ctx, rc.gateRequest)
	if err != nil {
		return err
	}
	rc.writeCheckHeaders(&answer)
	return answer.Refusal()
}

func (s *Server) consumeForwarded(rc *request) error {
	done, err := s.spend(rc)
	if err != nil {
		return err
	}
	rc.writeDebitHeaders(done)
	set(rc.Response().Header(), forwarded.HeaderOperation, done.OperationID)
	return nil
}

// readForwarded reads the client's request from the headers and the path that the gateway sent.
func (rc *request) readForwarded() (forwarded.Request, error) {
	f, err := rc.gateway.Read(rc.Request())
	if err != nil {
		return f, err
	}
	rc.gateRequest = gate.Request{
		Tenant: f.Tenant, Subject: f.Subject, Route: f.Route, Items: []ledger.Item{{Meter: f.Meter, Amount: f.Amount}},
		IP: rc.server.proxies.Client(rc.Request()), Method: strings.ToUpper(f.Method), Key: forwarded.OperationKey(f.Key, randomID), Forwarded: f.Method + " " + f.URI,
		Once: cmp.Or(f.Key, givenRequestID(rc.Request().Header)),
	}
	if f.Preflight {
		return f, nil
	}
	return f, rc.ofTenant(f.Tenant)
}
