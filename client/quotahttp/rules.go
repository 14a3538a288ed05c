package quotahttp

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// Defaults of Rules. The service answers in milliseconds; its own time limit is 5 s.
const (
	defaultTimeout  = 2 * time.Second
	defaultDeadline = 5 * time.Second

	maxRoute = 256 // of the contract
)

// ErrNotCounted is the error that Tenant returns for requests that are served uncharged, such as health checks.
var ErrNotCounted = errors.New("the request is not counted")

// Rules say what a request costs and which tenant pays. R is the framework's type of a request.
type Rules[R any] struct {
	Meter     string         // required unless MeterFunc is set
	MeterFunc func(R) string // instead of Meter

	// Tenant returns the tenant that pays. Required. If it returns ErrNotCounted, the request is served uncharged.
	// Any other error, or an empty tenant, is an error of this backend: put the middleware behind authentication.
	Tenant func(R) (string, error)

	Cost     func(R) int64          // units; nil: 1. If it returns 0, the request is served uncharged
	Subject  func(R) string         // a user, key or team of the tenant, for caps and limits per subject; nil, empty: none
	Route    func(R) string         // for limits; nil: the path without its query
	IP       func(R) string         // the client's address, for limits per ip and blocks; nil: see the framework
	Metadata func(R) map[string]any // stored with the journal's entries; nil: none

	// IdempotencyKey returns the key of the operation. nil or empty: each request is a separate operation. Use a
	// client's key only if the handler uses it to recognise repeated requests: otherwise a client could send one key
	// with all requests and pay once.
	IdempotencyKey func(R) string

	FailOpen *bool                 // pass uncharged while the service does not decide; nil: the client's FailOpen
	Refund   func(status int) bool // whether to refund; nil: from 500 on. A client that breaks off its request pays

	Timeout  time.Duration // of one attempt; 0 means 2 s
	Deadline time.Duration // of the decision with its retries; 0 means 5 s
}

// Check sets the defaults. An error names the rule that is wrong.
func (o *Rules[R]) Check() error {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Deadline == 0 {
		o.Deadline = defaultDeadline
	}
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

// Seen is the data of a request that every framework has.
type Seen struct{ Method, Path, IP string }

var methods = regexp.MustCompile(`^[A-Z][A-Z-]{0,31}$`)

// consume returns the request to the service for req. It returns nil if req is not counted.
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

// call calls a function that may be nil.
func call[R, T any](f func(R) T, req R) (none T) {
	if f == nil {
		return none
	}
	return f(req)
}

// routeOf returns a path as the contract allows it: only visible ASCII, and not too long.
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
