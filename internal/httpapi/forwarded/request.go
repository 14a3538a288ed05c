package forwarded

import (
	"net/http"
	"slices"
	"strings"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/route"
)

// Headers with which a gateway describes the forwarded request.
const (
	HeaderTenant  = "X-Quota-Tenant"
	HeaderMeter   = "X-Quota-Meter"
	HeaderAmount  = "X-Quota-Amount"
	HeaderSubject = "X-Quota-Subject"
	HeaderRoute   = "X-Quota-Route"
	HeaderMode    = "X-Quota-Mode"
	HeaderRule    = "X-Quota-Rule" // with ModeLease: the limit of kind concurrency

	// HeaderKey is the header with the gateway's own key. The Authorization header may have the client's key instead.
	HeaderKey = "X-Quota-Key"

	headerIdempotencyKey = "Idempotency-Key"

	// Browsers send both headers with each preflight.
	headerOrigin          = "Origin"
	headerPreflightMethod = "Access-Control-Request-Method"
)

// Values of the header HeaderMode. An empty header means ModeConsume.
const (
	ModeConsume = "consume"
	ModeCheck   = "check"
	ModeLimit   = "limit" // charges only limits, with HeaderAmount as the cost; needs no meter
	ModeLease   = "lease" // acquires a lease of HeaderRule, which the gateway ends; needs no meter
)

const (
	// uriMax is the longest request line that nginx accepts by default, in bytes. Longer URIs are refused and not
	// truncated. If URIs were truncated, a client could add a long prefix, and the part that a rule matches would be
	// cut off.
	uriMax     = 8 << 10
	mustFitURI = "must be at most 8192 bytes"
)

// Request is a forwarded request, as the gateway describes it.
type Request struct {
	Tenant, Subject string
	Meter           string
	Amount          int64
	Mode            string
	Rule            string // with ModeLease
	Key             string // the Idempotency-Key; empty: no key

	// Method and URI are as the client wrote them; empty: not given. Route is the route that the gateway names, or
	// the route of the URI if it names no route.
	Method, URI, Route string

	// Preflight means that a browser asks whether a page of another origin may send a request. It has no key of the
	// client, so the tenant may be unknown.
	Preflight bool
}

// Read reads the forwarded request from the headers and the path of r. If they are invalid, the error is a
// *body.Error.
func (g *Gateway) Read(r *http.Request) (Request, error) {
	h := headerReader{header: r.Header}
	h.refuseUnknown()
	req := Request{
		Tenant: h.text(HeaderTenant, bound.Name, bound.MustBeName), Subject: h.text(HeaderSubject, bound.Name, bound.MustBeName),
		Meter: h.text(HeaderMeter, bound.ID, bound.MustBeID), Amount: h.amount(HeaderAmount), Route: h.text(HeaderRoute, bound.Route, bound.MustBeRoute),
	}
	modes := []string{ModeConsume, ModeCheck, ModeLimit, ModeLease}
	req.Mode = h.text(HeaderMode, func(s string) bool { return slices.Contains(modes, s) }, body.OneOf(modes...))
	req.Rule = h.text(HeaderRule, bound.ID, bound.MustBeID)
	req.Method, req.URI, req.Preflight = g.original(r, &h)
	switch {
	case req.Preflight:
	case req.Mode == ModeLease:
		h.require(HeaderTenant, HeaderRule)
	case req.Mode == ModeLimit:
		h.require(HeaderTenant)
	default:
		h.require(HeaderTenant, HeaderMeter)
	}
	if req.Rule != "" && req.Mode != ModeLease {
		h.faults.Add(HeaderRule, "needs "+HeaderMode+": "+ModeLease)
	}
	req.Key = h.text(headerIdempotencyKey, bound.Key, bound.MustBeKey)
	if err := h.faults.Err(); err != nil {
		return Request{}, err
	}
	if req.Route == "" && req.URI != "" {
		req.Route = route.FromURI(req.URI)
	}
	return req, nil
}

// original returns the method and the URI of the forwarded request as the client wrote them, and reports whether it is
// a preflight. For that, the method counts only if the gateway itself has set it: a client may send the headers that are
// read in its place.
func (g *Gateway) original(r *http.Request, h *headerReader) (method, uri string, preflight bool) {
	field, own := "path", true
	if len(g.uri) > 0 {
		var name string
		method, name = h.first(g.method)
		own = name == g.method[0]
		uri, field = h.first(g.uri)
	} else {
		method, uri = r.Method, strings.TrimPrefix(r.URL.EscapedPath(), PrefixEnvoy)
		if r.URL.RawQuery != "" {
			uri += "?" + r.URL.RawQuery
		}
	}
	if len(uri) > uriMax {
		h.faults.Add(field, mustFitURI)
	}
	asks := r.Header.Get(headerOrigin) != "" && r.Header.Get(headerPreflightMethod) != ""
	return method, uri, own && method == http.MethodOptions && asks
}

// headerReader reads headers and collects the faults in them. It treats an empty header as absent, because gateways
// send empty headers for missing values.
type headerReader struct {
	header http.Header
	faults body.Faults
}

// first returns the value and the name of the first header in `names` that is set.
func (r *headerReader) first(names []string) (value, name string) {
	for _, name := range names {
		if value := r.one(name); value != "" {
			return value, name
		}
	}
	return "", ""
}

// one returns a header that may appear once. If there are two values, it records a fault, because the client may have
// sent one of them.
func (r *headerReader) one(name string) string {
	values := r.header.Values(name)
	if len(values) > 1 {
		r.faults.Add(name, "must appear once")
		return ""
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// text returns the value of a header. If `check` returns false for the value, text records a fault with the message
// `must`.
func (r *headerReader) text(name string, check func(string) bool, must string) string {
	value := r.one(name)
	if value != "" && !check(value) {
		r.faults.Add(name, must)
		return ""
	}
	return value
}

// amount returns the amount in a header. It returns 1 if there is no such header.
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

// require records a fault for each of these headers that is missing.
func (r *headerReader) require(names ...string) {
	for _, name := range names {
		if r.header.Get(name) == "" {
			r.faults.Add(name, "is required")
		}
	}
}

// refuseUnknown records a fault for each unknown X-Quota header. If a misspelt X-Quota-Amount were ignored, the amount
// would be 1. The X-Quota headers of answers are no faults, because a gateway may have added them.
func (r *headerReader) refuseUnknown() {
	for name := range r.header {
		if strings.HasPrefix(name, "X-Quota-") && !isQuotaHeader(name) {
			r.faults.Add(name, "is an unknown header")
		}
	}
}

func isQuotaHeader(name string) bool {
	switch name {
	case HeaderTenant, HeaderMeter, HeaderAmount, HeaderSubject, HeaderRoute, HeaderMode, HeaderRule, HeaderKey, HeaderOperation, HeaderCharge, HeaderLease, HeaderStatus,
		HeaderProblem,
		"X-Quota-Limit", "X-Quota-Remaining", "X-Quota-Reset", "X-Quota-Source":
		return true
	default:
		return false
	}
}
