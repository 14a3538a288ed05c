package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// What a gateway says of a request that it holds back.
const (
	headerQuotaTenant  = "X-Quota-Tenant"
	headerQuotaMeter   = "X-Quota-Meter"
	headerQuotaAmount  = "X-Quota-Amount"
	headerQuotaSubject = "X-Quota-Subject"
	headerQuotaRoute   = "X-Quota-Route"
	headerQuotaMode    = "X-Quota-Mode"
	headerQuotaKey     = "X-Quota-Key"

	modeConsume = "consume"
	modeCheck   = "check"
)

const (
	// uriMax is the longest request line that nginx takes unless it is told otherwise. What is longer is refused, not cut: a
	// rule would be evaded by what comes before the part it is about.
	uriMax     = 8 << 10
	mustFitURI = "must be at most 8192 bytes"

	// passageKeyPrefix begins the ids of operations at gateways. A client whose keys a gateway hands on cannot take those that
	// backends give.
	passageKeyPrefix = "gw-"
)

// readPassage reads from the headers what is to pass and whether to charge for it.
func (x *exchange) readPassage() (mode string, err error) {
	r := headerReader{header: x.Request().Header}
	r.refuseUnknown()
	ask := &x.request
	ask.Tenant = r.text(headerQuotaTenant, bound.ID, bound.MustBeID)
	ask.Subject = r.text(headerQuotaSubject, bound.ID, bound.MustBeID)
	ask.Route = r.text(headerQuotaRoute, bound.Route, bound.MustBeRoute)
	ask.Items = []ledger.Item{{Meter: r.text(headerQuotaMeter, bound.ID, bound.MustBeID), Amount: r.amount(headerQuotaAmount)}}
	r.require(headerQuotaTenant, headerQuotaMeter)
	mode = r.text(headerQuotaMode, func(s string) bool { return s == modeConsume || s == modeCheck }, "must be consume or check")
	key := r.text(headerIdempotencyKey, bound.Key, bound.MustBeKey)
	method, uri := x.passing(&r)
	if err := r.faults.Err(); err != nil {
		return "", err
	}
	if ask.Route == "" && uri != "" {
		ask.Route = routeOf(uri)
	}
	ask.IP = x.server.proxies.client(x.Request())
	ask.Key, ask.Forwarded = passageKey(key), method+" "+uri
	x.tenant = ask.Tenant
	return mode, nil
}

// passing returns what is to pass as the client wrote it.
func (x *exchange) passing(r *headerReader) (method, uri string) {
	field := "path"
	if g := x.gateway; len(g.uri) > 0 {
		method, _ = r.first(g.method)
		uri, field = r.first(g.uri)
	} else {
		u := x.Request().URL
		method, uri = x.Request().Method, strings.TrimPrefix(u.EscapedPath(), prefixEnvoy)
		if u.RawQuery != "" {
			uri += "?" + u.RawQuery
		}
	}
	if len(uri) > uriMax {
		r.faults.Add(field, mustFitURI)
	}
	return method, uri
}

// passageKey is the key of the operation: the gateway's, or else a new one. An X-Request-Id is never one. Many gateways hand on
// whatever the client sent under that name, and who repeats a key passes without paying.
func passageKey(given string) string {
	switch {
	case given == "":
		return passageKeyPrefix + randomID()
	case len(given) > bound.MaxKey-len(passageKeyPrefix):
		sum := sha256.Sum256([]byte(given))
		return passageKeyPrefix + hex.EncodeToString(sum[:])
	default:
		return passageKeyPrefix + given
	}
}

// headerReader reads headers, and collects what is wrong with them. An empty header is none: that is how gateways leave one
// out.
type headerReader struct {
	header http.Header
	faults body.Faults
}

// first returns the value of the first of these headers that is there, and its name.
func (r *headerReader) first(names []string) (value, name string) {
	for _, name := range names {
		if value := r.one(name); value != "" {
			return value, name
		}
	}
	return "", ""
}

// one returns a header that may be there once: of two values, one could be the client's.
func (r *headerReader) one(name string) string {
	values := r.header.Values(name)
	if len(values) > 1 {
		r.faults.Add(name, "must be there once")
		return ""
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// text returns a header that check accepts, or records what it must be.
func (r *headerReader) text(name string, check func(string) bool, must string) string {
	value := r.one(name)
	if value != "" && !check(value) {
		r.faults.Add(name, must)
		return ""
	}
	return value
}

// amount returns the amount in a header; 1 if there is none.
func (r *headerReader) amount(name string) int64 {
	value := r.one(name)
	if value == "" {
		return 1
	}
	n, ok := body.ParseInteger(value)
	if !ok || !bound.Amount(n) {
		r.faults.Add(name, bound.MustBeAmount)
	}
	return n
}

// require records those that are missing, and not at fault already.
func (r *headerReader) require(names ...string) {
	for _, name := range names {
		if r.header.Get(name) == "" {
			r.faults.Add(name, "is required")
		}
	}
}

// refuseUnknown records headers of this service's that it does not know: a misspelt X-Quota-Amount would be an amount of 1.
// Those of an answer are let be; a gateway may have put them there.
func (r *headerReader) refuseUnknown() {
	for name := range r.header {
		if strings.HasPrefix(name, "X-Quota-") && !isQuotaHeader(name) {
			r.faults.Add(name, "is not a header of this request")
		}
	}
}

func isQuotaHeader(name string) bool {
	switch name {
	case headerQuotaTenant, headerQuotaMeter, headerQuotaAmount, headerQuotaSubject, headerQuotaRoute, headerQuotaMode, headerQuotaKey,
		headerQuotaLimit, headerQuotaRemaining, headerQuotaReset, headerQuotaSource, headerQuotaOperation, headerQuotaStatus,
		headerQuotaProblem:
		return true
	default:
		return false
	}
}
