package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// What a gateway is told besides what every answer says.
const (
	// headerQuotaOperation names the operation that paid for the request: what a refund needs.
	headerQuotaOperation = "X-Quota-Operation"

	// headerQuotaStatus and headerQuotaProblem are status and body of a refusal, for a gateway that hands on neither.
	headerQuotaStatus  = "X-Quota-Status"
	headerQuotaProblem = "X-Quota-Problem"
)

// problemHeaderMax bounds a problem that travels in a header: gateways take 4 to 8 KiB of them unless they are told otherwise.
// A problem that is meant for clients has a tenth of this.
const problemHeaderMax = 3 << 10

// gateway is a proxy that asks whether a request may pass, and the form in which it needs the answer.
type gateway struct {
	name string

	// uri and method are the headers that say what is to pass. The first of each is the one that this gateway sets by itself,
	// whatever the client has sent under that name; the others count only where it is missing. Without any it is the request
	// line, behind the endpoint's path.
	uri, method []string

	// hides says that of all refusals only 401 and 403 pass this gateway, without a body.
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

// Envoy puts the endpoint's path in front of the one it was asked for.
const (
	gatewayEnvoy = "envoy"
	prefixEnvoy  = "/v1/authorize/" + gatewayEnvoy
)

// enterGateway notes in whose form the answer has to be: of a refused key, too.
func (rc *request) enterGateway() error {
	name := rc.parameter("gateway")
	if rc.Path() == prefixEnvoy+"/*" {
		name = gatewayEnvoy
	}
	known := rc.server.gateways
	i := slices.IndexFunc(known, func(g gateway) bool { return g.name == name })
	if i < 0 {
		return &refusal{code: ledger.CodeNotFound, detail: "there is no form for this gateway"}
	}
	rc.gateway = &known[i]
	return nil
}

// ownsQuery says that the query is the held-back request's, not this one's.
func (rc *request) hasForwardedQuery() bool { return rc.gateway != nil && rc.gateway.uri == nil }

// authorization is the caller's. At a gateway that header may be its client's own, and the gateway's key stands in another.
func (rc *request) authorization() string {
	h := rc.Request().Header
	if key := h.Get(headerQuotaKey); rc.gateway != nil && key != "" {
		return "Bearer " + key
	}
	return h.Get("Authorization")
}

// authorize decides whether a request may pass a gateway: a consume, or a check if the gateway asks for no more.
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

// refuse puts a refusal into the gateway's form and returns the status to answer with.
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

// appendASCII appends a JSON document as a header can carry it: what is not printable ASCII is escaped.
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
