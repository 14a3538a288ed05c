package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// defaultDeadline is long enough for the restart of an instance or a failover of its database.
	defaultDeadline = 30 * time.Second

	// idlePerHost is the number of idle connections that are kept open, so that this number of concurrent calls need
	// no new connection. By default, net/http keeps only 2.
	idlePerHost = 64
)

// AllMeters is an element of Options.FailOpen that stands for every meter.
const AllMeters = "*"

// Options are the options of a Client. A zero value means the default.
type Options struct {
	URL string // URL of the service, for example https://quotasvc.internal:8080; empty: QUOTASVC_URL of the environment
	Key string // needs the scope of the calls; empty: QUOTASVC_KEY of the environment

	// HTTP sends the requests. nil means a new HTTP client that keeps up to 64 idle connections. Redirects are not
	// followed.
	HTTP *http.Client

	// Timeout bounds one attempt. 0 means 5 s, which is the longest time that the service takes to refuse a request.
	Timeout time.Duration

	// Deadline bounds all attempts and waits of a call; 0 means 30 s. The context of the call may end it earlier.
	Deadline time.Duration

	// Attempts is the maximum number of attempts of a call. 0 means 5.
	Attempts int

	// MaxWait is the longest wait before a retry. 0 means 30 s. If an answer demands a longer wait, the call returns
	// the error of this answer at once.
	MaxWait time.Duration

	// Backoff computes the waits before retries.
	Backoff Backoff

	// KeepDenials makes calls return the error of a 429 at once. By default a call is retried after a 429 if
	// Retry-After is at most MaxWait.
	KeepDenials bool

	// FailOpen names the meters that fail open: their calls pass uncharged if the service does not decide. A call
	// passes only if FailOpen has all meters of the call. A call that is denied, or that has a wrong key or a wrong
	// request, never passes.
	FailOpen []string

	// Functions for metrics and logs. They are called on the goroutine of the call, except OnBackgroundError. They
	// must be safe for concurrent use. nil: no function is called.
	OnFailOpen        func(FailOpenEvent) // a call passed without a decision
	OnRetry           func(RetryEvent)    // before the wait of each retry
	OnBackgroundError func(error)         // a refund or an extension failed
}

// FailOpenEvent describes a call that passed although the service did not decide.
type FailOpenEvent struct {
	Operation string // operationId in the contract
	Tenant    string
	Items     []Item // these units were not charged
	Err       error
}

// RetryEvent describes a retry that is sent after Wait.
type RetryEvent struct {
	Operation string
	Attempt   int // number of the attempt that failed, from 1
	Wait      time.Duration
	Err       error
}

// complete sets the defaults of the options and checks the options.
func (o *Options) complete() error {
	o.URL = cmp.Or(o.URL, os.Getenv("QUOTASVC_URL"))
	o.Key = cmp.Or(o.Key, os.Getenv("QUOTASVC_KEY"))
	o.URL = strings.TrimRight(o.URL, "/")
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Deadline = cmp.Or(o.Deadline, defaultDeadline)
	o.MaxWait = cmp.Or(o.MaxWait, defaultMaxWait)
	o.Attempts = cmp.Or(o.Attempts, defaultAttempts)
	for _, rule := range []struct {
		ok     bool
		demand string
	}{
		{urls.MatchString(o.URL), "URL must begin with http:// or https:// (or set the environment variable QUOTASVC_URL)"},
		{keys.MatchString(o.Key), "Key must be set, in visible ASCII (or set the environment variable QUOTASVC_KEY)"},
		{o.Timeout > 0, "Timeout must be above 0"},
		{o.Deadline > 0, "Deadline must be above 0"},
		{o.Attempts > 0, "Attempts must be above 0"},
		{o.MaxWait > 0, "MaxWait must be above 0"},
		{!slices.Contains(o.FailOpen, ""), "FailOpen must name meters, or be AllMeters"},
	} {
		if !rule.ok {
			return errors.New("quotasvc: Options." + rule.demand)
		}
	}
	return nil
}

var (
	urls = regexp.MustCompile(`^https?://[^/]`)
	keys = regexp.MustCompile(`^[!-~]+$`)
)

// http returns the HTTP client that sends the requests. own is true if no other code uses its connections.
func (o *Options) http() (c *http.Client, own bool) {
	if o.HTTP == nil {
		transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}
		if d, ok := http.DefaultTransport.(*http.Transport); ok {
			transport = d.Clone()
		}
		transport.MaxIdleConnsPerHost, transport.MaxIdleConns = idlePerHost, 0
		c, own = &http.Client{Transport: transport}, true
	} else {
		sameExceptRedirects := *o.HTTP
		c = &sameExceptRedirects
	}
	// Redirects are not followed, because net/http would send a redirected POST as a GET.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, own
}

// Option changes the options of one call.
type Option func(*callOptions)

type callOptions struct {
	key, ifMatch      string
	timeout, deadline time.Duration
	keepDenials       bool
	failOpen          *bool
	meta              *Meta
}

// WithKey sets the Idempotency-Key of the operation: 1 to 255 visible ASCII characters. Without WithKey, each call is
// a new operation. If your program repeats its work after a restart, store the key with the work. Then the call takes
// effect once, for any number of restarts.
func WithKey(key string) Option { return func(o *callOptions) { o.key = key } }

// WithIfMatch makes the call fail if the object in the path no longer has this ETag.
func WithIfMatch(etag string) Option { return func(o *callOptions) { o.ifMatch = etag } }

// WithTimeout bounds one attempt, instead of Options.Timeout.
func WithTimeout(d time.Duration) Option { return func(o *callOptions) { o.timeout = d } }

// WithDeadline bounds all attempts and waits of the call, instead of Options.Deadline.
func WithDeadline(d time.Duration) Option { return func(o *callOptions) { o.deadline = d } }

// KeepDenial makes the call return the error of a 429 at once.
func KeepDenial() Option { return func(o *callOptions) { o.keepDenials = true } }

// WithFailOpen decides whether this call passes if the service does not decide. It replaces Options.FailOpen for this
// call. It has an effect only on Check, Consume, Debit and Hold of a Client.
func WithFailOpen(pass bool) Option { return func(o *callOptions) { o.failOpen = &pass } }

// WithMeta stores the metadata of the call's answer in m. A method that reads several pages stores the metadata of
// the last page.
func WithMeta(m *Meta) Option { return func(o *callOptions) { o.meta = m } }

// Meta is the metadata of an answer, without its body.
type Meta struct {
	Status         int         // 0: the call failed open
	Header         http.Header // to pass on to your clients: X-Quota-*, RateLimit and RateLimit-Policy
	RequestID      string      // request id of the last attempt, from the service
	Attempts       int
	IdempotencyKey string // empty if the operation has no key
	Replayed       bool   // the answer is the stored answer of an earlier request
	FailedOpen     bool   // the service did not decide, and nothing was charged
}

// optionsOf returns the options of one call: the defaults of the client, changed by list.
func (a *API) optionsOf(list []Option) (callOptions, error) {
	o := callOptions{timeout: a.options.Timeout, deadline: a.options.Deadline, keepDenials: a.options.KeepDenials}
	for _, option := range list {
		option(&o)
	}
	switch {
	case o.timeout <= 0 || o.deadline <= 0:
		return o, errors.New("quotasvc: WithTimeout and WithDeadline must be above 0")
	case o.key != "" && (len(o.key) > 255 || !keys.MatchString(o.key)):
		return o, fmt.Errorf("quotasvc: the Idempotency-Key must be 1 to 255 visible ASCII characters, got %q", o.key)
	}
	return o, nil
}
