package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Headers of answers that only gateways get.
const (
	// headerQuotaOperation names the operation that paid for the request. A refund needs it.
	headerQuotaOperation = "X-Quota-Operation"

	// headerQuotaStatus and headerQuotaProblem are the status and the body of a refusal, for gateways that pass neither to
	// clients.
	headerQuotaStatus  = "X-Quota-Status"
	headerQuotaProblem = "X-Quota-Problem"
)

// problemHeaderMax bounds a problem in a header, in bytes: gateways accept 4 to 8 KiB of headers by default. A usual problem
// has a tenth of this.
const problemHeaderMax = 3 << 10

// gateway is a kind of proxy that asks whether a request may pass, and the form of the answers that it needs.
type gateway struct {
	name string

	// uri and method name the headers with the URI and the method of the forwarded request. Each list begins with the header
	// that this gateway itself sets, whatever the client sent under that name. The other headers count only if the first is
	// missing. A gateway without such headers sends the URI as the request line, after the path of the endpoint.
	uri, method []string

	// hides reports whether the gateway passes only 401 and 403 to clients, without their bodies.
	hides bool
}

func newGateways() []gateway {
	original, forwarded := []string{"X-Original-URI", "X-Original-Method"}, []string{"X-Forwarded-Uri", "X-Forwarded-Method"}
	return []gateway{
		{name: "nginx", hides: true, uri: []string{original[0], forwarded[0]}, method: []string{original[1], forwarded[1]}},
		{name: "haproxy", uri: []string{original[0], forwarded[0]}, method: []string{original[1], forwarded[1]}},
		{name: "traefik", uri: []string{forwarded[0], original[0]}, method: []string{forwarded[1], original[1]}},
		{name: gatewayEnvoy},
	}
}

// Envoy puts the path of the endpoint before the path of the forwarded request.
const (
	gatewayEnvoy = "envoy"
	prefixEnvoy  = "/v1/authorize/" + gatewayEnvoy
)

// enterGateway notes which gateway asks. Refusals of the gateway's key take its form as well.
func (rc *request) enterGateway() error {
	name := rc.parameter("gateway")
	if rc.Path() == prefixEnvoy+"/*" {
		name = gatewayEnvoy
	}
	known := rc.server.gateways
	i := slices.IndexFunc(known, func(g gateway) bool { return g.name == name })
	if i < 0 {
		return &refusal{code: ledger.CodeNotFound, detail: "unknown gateway; supported are nginx, haproxy, traefik, envoy"}
	}
	rc.gateway = &known[i]
	return nil
}

// hasForwardedQuery reports whether the query belongs to the forwarded request.
func (rc *request) hasForwardedQuery() bool { return rc.gateway != nil && rc.gateway.uri == nil }

// authorize decides whether a request may pass a gateway. It consumes, or only checks if the gateway asks for that.
func (s *Server) authorize(rc *request) error {
	mode, err := rc.readForwarded()
	if err != nil {
		return err
	}
	if mode == modeCheck {
		err = s.checkForwarded(rc)
	} else {
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
	set(rc.Response().Header(), headerQuotaOperation, done.OperationID)
	return nil
}

// refuse adds the headers that the gateway needs to a refusal, and returns the status to answer with.
func (g *gateway) refuse(h http.Header, status int, body []byte) int {
	if !g.hides {
		return status
	}
	set(h, headerQuotaStatus, strconv.Itoa(status))
	if problem := appendASCII(nil, body); len(problem) <= problemHeaderMax {
		set(h, headerQuotaProblem, string(problem))
	}
	if status == http.StatusUnauthorized {
		return status
	}
	return http.StatusForbidden
}

// appendASCII appends a JSON document in printable ASCII, so that a header can hold it. It escapes all other characters.
func appendASCII(b, document []byte) []byte {
	const hex = "0123456789abcdef"
	unit := func(b []byte, u rune) []byte {
		return append(b, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	for i := 0; i < len(document); {
		c, size := utf8.DecodeRune(document[i:])
		i += size
		switch {
		case c >= ' ' && c <= '~':
			b = append(b, byte(c))
		case c > 0xffff:
			c -= 0x10000
			b = unit(unit(b, 0xd800+c>>10), 0xdc00+c&0x3ff)
		default:
			b = unit(b, c)
		}
	}
	return b
}
