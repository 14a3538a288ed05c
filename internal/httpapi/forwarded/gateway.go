package forwarded

import (
	"net/http"
	"strconv"
	"unicode/utf8"
)

// Headers that only answers to gateways have.
const (
	// HeaderOperation is the header with the id of the operation that debited the units for the request. A refund
	// needs this id.
	HeaderOperation = "X-Quota-Operation"

	// HeaderCharge is the header with the id of a charge of limits. A refund of the charge needs this id.
	HeaderCharge = "X-Quota-Charge"

	// HeaderLease is the header with the id of a lease. The gateway ends the lease when the request has ended.
	HeaderLease = "X-Quota-Lease"

	// HeaderStatus and HeaderProblem are the headers with the status and the body of a refusal, for gateways that
	// pass neither to their clients.
	HeaderStatus  = "X-Quota-Status"
	HeaderProblem = "X-Quota-Problem"
)

// Exposed lists the headers of answers that pages of other origins may read. Browsers hide all others from them.
const Exposed = "Retry-After, RateLimit, RateLimit-Policy, X-Quota-Limit, X-Quota-Remaining, X-Quota-Reset"

// valueMax is the maximum length in bytes of a problem, or of a charge's id, in a header. By default, gateways accept
// 4 to 8 KiB of headers. A usual problem has a tenth of this length. The id of a charge of two limits also has a
// tenth.
const valueMax = 3 << 10

// Envoy sends the path PrefixEnvoy, followed by the path of the forwarded request.
const (
	Envoy       = "envoy"
	PrefixEnvoy = "/v1/authorize/" + Envoy
)

// Gateway describes a kind of proxy: how it describes the forwarded request, and which form of answer it needs.
type Gateway struct {
	// uri and method are the names of the headers with the URI and the method of the forwarded request. The gateway
	// itself sets the first header of each list, and overwrites the client's header of the same name. The other
	// headers are read only if the first header is missing. If uri is nil, the gateway sends the URI in the request
	// line, after the path of the endpoint.
	uri, method []string

	// hides is true if the gateway passes only the statuses 401 and 403 to clients, and no bodies.
	hides bool
}

// Gateways returns the supported gateways, keyed by their names in the path.
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

// HasQuery reports whether the URL of the gateway's own request contains the query of the forwarded request.
func (g *Gateway) HasQuery() bool { return g.uri == nil }

// Pass adds the id of the charge to the answer for a request that may pass. If the id is longer than valueMax, Pass
// omits it, and the charge cannot be refunded.
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

// appendASCII appends a JSON document to b in printable ASCII, which headers require. It escapes all other
// characters.
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
