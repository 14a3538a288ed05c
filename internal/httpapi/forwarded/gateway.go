package forwarded

import (
	"net/http"
	"strconv"
	"unicode/utf8"
)

// Headers of answers that only gateways get.
const (
	// HeaderOperation names the operation that paid for the request. A refund needs it.
	HeaderOperation = "X-Quota-Operation"

	// HeaderCharge is the id of a charge of limits. A refund needs it.
	HeaderCharge = "X-Quota-Charge"

	// HeaderStatus and HeaderProblem are the status and the body of a refusal, for gateways that pass neither to clients.
	HeaderStatus  = "X-Quota-Status"
	HeaderProblem = "X-Quota-Problem"
)

// valueMax bounds a problem or the id of a charge in a header, in bytes: gateways accept 4 to 8 KiB of headers by default. A usual
// problem has a tenth of this, and so has the id of a charge of two limits.
const valueMax = 3 << 10

// Envoy puts the path of the endpoint before the path of the forwarded request.
const (
	Envoy       = "envoy"
	PrefixEnvoy = "/v1/authorize/" + Envoy
)

// Gateway is a kind of proxy that asks whether a request may pass, and the form of the answers that it needs.
type Gateway struct {
	// uri and method name the headers with the URI and the method of the forwarded request. Each list begins with the header
	// that this gateway itself sets, whatever the client sent under that name. The other headers count only if the first is
	// missing. A gateway without such headers sends the URI as the request line, after the path of the endpoint.
	uri, method []string

	// hides reports whether the gateway passes only 401 and 403 to clients, without their bodies.
	hides bool
}

// Gateways returns the supported gateways by name.
func Gateways() map[string]*Gateway {
	original, forwarded := []string{"X-Original-URI", "X-Original-Method"}, []string{"X-Forwarded-Uri", "X-Forwarded-Method"}
	uri, method := []string{original[0], forwarded[0]}, []string{original[1], forwarded[1]}
	return map[string]*Gateway{
		"nginx":   {uri: uri, method: method, hides: true},
		"haproxy": {uri: uri, method: method},
		"traefik": {uri: []string{forwarded[0], original[0]}, method: []string{forwarded[1], original[1]}},
		Envoy:     {},
	}
}

// HasQuery reports whether the query of the gateway's own request belongs to the forwarded request.
func (g *Gateway) HasQuery() bool { return g.uri == nil }

// Pass adds the id of the charge to the answer for a request that may pass. An id that is longer than gateways accept
// is left out: the charge cannot be refunded then.
func (g *Gateway) Pass(h http.Header, charge string) {
	if charge != "" && len(charge) <= valueMax {
		h[HeaderCharge] = []string{charge}
	}
}

// Refuse adds the headers that the gateway needs to a refusal, and returns the status of the answer.
func (g *Gateway) Refuse(h http.Header, status int, body []byte) int {
	if !g.hides {
		return status
	}
	h[HeaderStatus] = []string{strconv.Itoa(status)}
	if problem := appendASCII(nil, body); len(problem) <= valueMax {
		h[HeaderProblem] = []string{string(problem)}
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
