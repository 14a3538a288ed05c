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
	forwardedKeyPrefix = "gw-"
)

// readPassage reads from the headers what is to pass and whether to charge for it.
func (rc *request) readForwarded() (mode string, err error) {
	r := headerReader{header: rc.Request().Header}
	r.refuseUnknown()
	ask := &rc.gateRequest
	ask.Tenant = r.text(headerQuotaTenant, bound.ID, bound.MustBeID)
	ask.Subject = r.text(headerQuotaSubject, bound.ID, bound.MustBeID)
	ask.Route = r.text(headerQuotaRoute, bound.Route, bound.MustBeRoute)
	ask.Items = []ledger.Item{{Meter: r.text(headerQuotaMeter, bound.ID, bound.MustBeID), Amount: r.amount(headerQuotaAmount)}}
	r.require(headerQuotaTenant, headerQuotaMeter)
	mode = r.text(headerQuotaMode, func(s string) bool { return s == modeConsume || s == modeCheck }, "must be consume or check")
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
	rc.tenant = ask.Tenant
	return mode, nil
}

// passing returns what is to pass as the client wrote it.
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

// passageKey is the key of the operation: the gateway's, or else a new one. An X-Request-Id is never one. Many gateways hand on
// whatever the client sent under that name, and who repeats a key passes without paying.
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

// routeOf returns the route of a URI: its path, without query, in one spelling. Clients choose how to write a path, and a rule for
// /search must not be evaded by writing //search, /./search or /%73earch.
//
// Escapes of printable ASCII are resolved, but for those that would make another path of it (%2F, %3F, %23, %25 and %20);
// everything else is escaped, in upper case. Dot segments are resolved and empty segments dropped. What servers differ in stays
// as it is: case, a slash at the end, and parameters behind a semicolon.
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
			kept = append(kept, "") // a directory
		}
	}
	return "/" + strings.Join(kept, "/")
}

// plainPath resolves the escapes that need not be there and adds those that need be.
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
				escaped = true // a bare % stands for itself
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

// nibble is the value of the hexadecimal digit at i, or -1.
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
