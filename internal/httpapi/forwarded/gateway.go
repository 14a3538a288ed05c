package forwarded

import (
	"net/http"
	"strconv"
	"unicode/utf8"
)

// Headers that only the answers to gateways have.
const (
	// HeaderOperation names the operation that paid for the request. A refund needs it.
	HeaderOperation = "X-Quota-Operation"

	// HeaderCharge is the id of a charge of limits. A refund needs it.
	HeaderCharge = "X-Quota-Charge"

	// HeaderStatus and HeaderProblem are the status and the body of a refusal, for gateways that pass neither to clients.
	HeaderStatus  = "X-Quota-Status"
	HeaderProblem = "X-Quota-Problem"
)

// valueMax bounds a problem or the id of a charge in a header, in bytes. By default, gateways accept 4 to 8 KiB of
// headers. A usual problem has a tenth of valueMax. The id of a charge of two limits has a tenth, too.
const valueMax = 3 << 10

// Envoy sends the path of the endpoint, followed by the path of the forwarded request.
const (
	Envoy       = "envoy"
	PrefixEnvoy = "/v1/authorize/" + Envoy
)

// Gateway describes a kind of proxy that asks whether a request may pass, and the form of answer that it needs.
type Gateway struct {
	// uri and method name the headers with the URI and the method of the forwarded request. The first header of each
	// list is the one that this gateway itself sets, whether or not the client sent a header with that name. The
	// other headers count only if the first is missing. If uri is nil, the gateway sends the URI in the request line,
	// after the path of the endpoint.
	uri, method []string

	// hides reports whether the gateway passes only the statuses 401 and 403 to clients, without the bodies.
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

// HasQuery reports whether the query in the gateway's own request line is that of the forwarded request.
func (g *Gateway) HasQuery() bool { return g.uri == nil }

// Pass adds the id of the charge to the answer for a request that may pass. It omits an id that is too long for
// gateways; then the charge cannot be refunded.
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

// appendASCII appends a JSON document to b in printable ASCII, as a header needs it. It escapes all other characters.
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
