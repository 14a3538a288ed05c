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

// Headers by which a gateway describes the forwarded request: the request that it holds back and asks about.
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
	// uriMax is the longest request line that nginx accepts by default. Longer URIs are refused, not cut: a client could
	// evade a rule by a prefix that pushes the matching part out.
	uriMax     = 8 << 10
	mustFitURI = "must be at most 8192 bytes"

	// forwardedKeyPrefix begins the operation ids of forwarded requests. A client whose keys a gateway passes on so cannot
	// use the key of a backend.
	forwardedKeyPrefix = "gw-"
)

// readForwarded reads the forwarded request from the headers, and whether to consume or to check.
func (rc *request) readForwarded() (mode string, err error) {
	r := headerReader{header: rc.Request().Header}
	r.refuseUnknown()
	ask := &rc.gateRequest
	ask.Tenant = r.text(headerQuotaTenant, bound.ID, bound.MustBeID)
	ask.Subject = r.text(headerQuotaSubject, bound.ID, bound.MustBeID)
	ask.Route = r.text(headerQuotaRoute, bound.Route, bound.MustBeRoute)
	ask.Items = []ledger.Item{{Meter: r.text(headerQuotaMeter, bound.ID, bound.MustBeID), Amount: r.amount(headerQuotaAmount)}}
	r.require(headerQuotaTenant, headerQuotaMeter)
	mode = r.text(headerQuotaMode, func(s string) bool { return s == modeConsume || s == modeCheck }, body.OneOf(modeConsume, modeCheck))
	key := r.text(headerIdempotencyKey, bound.Key, bound.MustBeKey)
	method, uri := rc.forwardedURI(&r)
	if err := r.faults.Err(); err != nil {
		return "", err
	}
	if ask.Route == "" && uri != "" {
		ask.Route = routeOf(uri)
	}
	ask.IP = rc.server.proxies.client(rc.Request())
	ask.Key, ask.Forwarded = forwardedKey(key), method+" "+uri
	return mode, rc.ofTenant(ask.Tenant)
}

// forwardedURI returns method and URI of the forwarded request as the client wrote them.
func (rc *request) forwardedURI(r *headerReader) (method, uri string) {
	field := "path"
	if g := rc.gateway; len(g.uri) > 0 {
		method, _ = r.first(g.method)
		uri, field = r.first(g.uri)
	} else {
		u := rc.Request().URL
		method, uri = rc.Request().Method, strings.TrimPrefix(u.EscapedPath(), prefixEnvoy)
		if u.RawQuery != "" {
			uri += "?" + u.RawQuery
		}
	}
	if len(uri) > uriMax {
		r.faults.Add(field, mustFitURI)
	}
	return method, uri
}

// forwardedKey returns the key of the operation: the given one with a prefix, or a new one. An X-Request-Id never becomes a
// key: many gateways pass on what the client sent under that name, and a client that repeats a key does not pay again.
func forwardedKey(given string) string {
	switch {
	case given == "":
		return forwardedKeyPrefix + randomID()
	case len(given) > bound.MaxKey-len(forwardedKeyPrefix):
		sum := sha256.Sum256([]byte(given))
		return forwardedKeyPrefix + hex.EncodeToString(sum[:])
	default:
		return forwardedKeyPrefix + given
	}
}

// headerReader reads headers and collects their faults. It treats an empty header as absent, because gateways send empty
// headers for missing values.
type headerReader struct {
	header http.Header
	faults body.Faults
}

// first returns the value of the first header among names that is set, and its name.
func (r *headerReader) first(names []string) (value, name string) {
	for _, name := range names {
		if value := r.one(name); value != "" {
			return value, name
		}
	}
	return "", ""
}

// one returns a header that may appear once. Of two values the client may have sent one.
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

// text returns a header that check accepts, or notes what it must be.
func (r *headerReader) text(name string, check func(string) bool, must string) string {
	value := r.one(name)
	if value != "" && !check(value) {
		r.faults.Add(name, must)
		return ""
	}
	return value
}

// amount returns the amount in a header, or 1 if there is none.
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

// require notes headers that are missing.
func (r *headerReader) require(names ...string) {
	for _, name := range names {
		if r.header.Get(name) == "" {
			r.faults.Add(name, "is required")
		}
	}
}

// refuseUnknown notes X-Quota headers that are not part of a request: a misspelt X-Quota-Amount would mean an amount of 1.
// It ignores those of answers, which a gateway may have added.
func (r *headerReader) refuseUnknown() {
	for name := range r.header {
		if strings.HasPrefix(name, "X-Quota-") && !isQuotaHeader(name) {
			r.faults.Add(name, "is an unknown header")
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

// routeOf returns the route of a URI: its path without query, in one normal form. Clients choose the spelling of a path, so
// /search, //search, /./search and /%73earch must give one route.
//
// routeOf unescapes printable ASCII, except for characters that would change the path (%2F, %3F, %23, %25 and %20). It
// escapes everything else, in upper case. It resolves dot segments and drops empty ones. It keeps what servers treat
// differently: case, a slash at the end, and parameters after a semicolon.
func routeOf(uri string) string {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	if _, rest, absolute := strings.Cut(uri, "://"); absolute && uri[0] != '/' {
		_, path, _ := strings.Cut(rest, "/")
		uri = "/" + path
	}
	segments := strings.Split(plainPath(uri), "/")
	kept := segments[:0]
	for i, segment := range segments {
		last := i == len(segments)-1
		switch {
		case segment == "..":
			kept = kept[:max(len(kept)-1, 0)]
		case segment != "" && segment != ".":
			kept = append(kept, segment)
			continue
		}
		if last && len(kept) > 0 {
			kept = append(kept, "") // a trailing slash
		}
	}
	return "/" + strings.Join(kept, "/")
}

// plainPath removes escapes that are not needed and adds those that are.
func plainPath(path string) string {
	const upper = "0123456789ABCDEF"
	b := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		c, escaped := path[i], false
		if c == '%' {
			if high, low := nibble(path, i+1), nibble(path, i+2); high >= 0 && low >= 0 {
				c, escaped = byte(high<<4|low), true
				i += 2
			} else {
				escaped = true // a % without digits stands for itself
			}
		}
		if c <= ' ' || c > '~' || escaped && strings.IndexByte("/?#%", c) >= 0 {
			b = append(b, '%', upper[c>>4], upper[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// nibble returns the value of the hexadecimal digit at i, or -1.
func nibble(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch c := s[i]; {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}
