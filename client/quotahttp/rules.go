package quotahttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// Defaults of Rules. The service answers in milliseconds. Its own time limit for a request is 5 s.
const (
	defaultTimeout  = 2 * time.Second
	defaultDeadline = 5 * time.Second

	maxRoute = 256 // the maximum in the contract, in characters
)

// ErrNotCounted is the error that Tenant returns for requests that are served uncharged, such as health checks.
var ErrNotCounted = errors.New("the request is not counted")

// Rules say what a request costs and which tenant pays. R is the framework's type of a request.
type Rules[R any] struct {
	Meter     string         // the meter; required unless MeterFunc is set
	MeterFunc func(R) string // returns the meter of a request; instead of Meter

	// Tenant returns the tenant that pays. It is required. If it returns ErrNotCounted, the request is served
	// uncharged. If it returns another error or an empty tenant, the request is not served, and the middleware
	// reports an error: put the middleware behind authentication.
	Tenant func(R) (string, error)

	Cost     func(R) int64          // units of a request; nil: 1. If it returns 0, the request is served uncharged
	Subject  func(R) string         // a user, key or team of the tenant, for caps and limits per subject; nil, empty: none
	Route    func(R) string         // the route, for limits; nil: the path without its query
	IP       func(R) string         // the client's address, for limits per ip and for blocks; nil: see Options
	Metadata func(R) map[string]any // stored with the journal's entries; nil: no metadata

	// IdempotencyKey returns the key of the operation. nil or empty: each request is a separate operation. Use a key
	// that the client sends only if the handler also uses it to recognise repeated requests. Otherwise a client could
	// send the same key with all requests and pay once.
	IdempotencyKey func(R) string

	FailOpen *bool                 // pass uncharged while the service does not decide; nil: the client's FailOpen
	Refund   func(status int) bool // whether to refund; nil: 500 or more. A client that aborts its request pays

	Timeout  time.Duration // maximum time of one attempt; 0 means 2 s
	Deadline time.Duration // maximum time of the decision with its retries; 0 means 5 s
}

// Check sets the defaults. If a rule is wrong, the error names it.
func (o *Rules[R]) Check() error {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Deadline = cmp.Or(o.Deadline, defaultDeadline)
	if o.Refund == nil {
		o.Refund = func(status int) bool { return status >= 500 }
	}
	switch {
	case (o.Meter == "") == (o.MeterFunc == nil):
		return errors.New("quota: either Meter or MeterFunc is required")
	case o.Tenant == nil:
		return errors.New("quota: Tenant is required")
	case o.Timeout < 0 || o.Deadline < 0:
		return errors.New("quota: Timeout and Deadline must be above 0")
	}
	return nil
}

// Seen has the data of a request that the middleware reads without the functions of Rules.
type Seen struct{ Method, Path, IP string }

var methods = regexp.MustCompile(`^[A-Z][A-Z-]{0,31}$`)

// consume returns the body of the consume for req. It returns nil if req is served uncharged.
func (o *Rules[R]) consume(req R, seen Seen) (*client.ConsumeRequest, error) {
	tenant, err := o.Tenant(req)
	if errors.Is(err, ErrNotCounted) {
		return nil, nil //nolint:nilnil // there is nothing to ask, and nothing went wrong
	}
	if err != nil {
		return nil, fmt.Errorf("quota: who pays: %w", err)
	}
	if tenant == "" {
		return nil, errors.New("quota: Tenant returned nothing: put the middleware behind authentication, or return ErrNotCounted")
	}
	amount := int64(1)
	if o.Cost != nil {
		amount = o.Cost(req)
	}
	if amount < 0 {
		return nil, fmt.Errorf("quota: Cost must be 0 or more, got %d", amount)
	}
	if amount == 0 {
		return nil, nil //nolint:nilnil // there is nothing to ask, and nothing went wrong
	}
	meter := o.Meter
	if o.MeterFunc != nil {
		meter = o.MeterFunc(req)
	}
	if o.Route != nil {
		seen.Path = o.Route(req)
	}
	if o.IP != nil {
		seen.IP = o.IP(req)
	}
	body := &client.ConsumeRequest{
		Tenant: tenant, Items: []client.Item{{Meter: meter, Amount: amount}},
		Subject: call(o.Subject, req), Route: routeOf(seen.Path), Metadata: call(o.Metadata, req),
	}
	body.IP, _, _ = strings.Cut(seen.IP, "%")
	if method := strings.ToUpper(seen.Method); methods.MatchString(method) {
		body.Method = method
	}
	return body, nil
}

// call returns f(req), or the zero value if f is nil.
func call[R, T any](f func(R) T, req R) (none T) {
	if f == nil {
		return none
	}
	return f(req)
}

// routeOf returns a path in the form that the contract allows for a route: only printable ASCII characters, and at
// most maxRoute of them.
func routeOf(path string) string {
	var b strings.Builder
	for _, r := range path {
		if r < ' ' || r > '~' {
			b.WriteString(url.PathEscape(string(r)))
		} else {
			b.WriteRune(r)
		}
		if b.Len() >= maxRoute {
			return b.String()[:maxRoute]
		}
	}
	return b.String()
}
