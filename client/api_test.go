package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// service is a server that answers each request with the next handler in `answers`, and then repeats the last handler.
// It records the requests.
type service struct {
	*httptest.Server

	mu      sync.Mutex
	answers []http.HandlerFunc
	asked   []string // method, path and key of each request
}

func newService(t *testing.T, answers ...http.HandlerFunc) *service {
	t.Helper()
	s := &service{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.String()+" "+r.Header.Get(HeaderIdempotencyKey))
		answer := s.answers[0]
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// problem returns a handler that answers with a problem. If after is not empty, it is sent as Retry-After.
func problem(status int, code, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"code":%q,"title":"x","detail":"y","status":%d}`, code, status)
	}
}

func granted(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"operation_id":"o"}`)
}

// clientOf returns a client that does not wait before its retries. It also returns the list in which the client
// records the waits.
func clientOf(t *testing.T, s *service, change ...func(*Options)) (*Client, *[]time.Duration) {
	t.Helper()
	o := Options{URL: s.URL + "/", Key: "k", Backoff: Backoff{Random: func(n int64) int64 { return n / 2 }}}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration
	c.retrier.Sleep = func(ctx context.Context, d time.Duration) error {
		waits = append(waits, d)
		return ctx.Err()
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c, &waits
}

func TestOptions_Wrong_NamesField(t *testing.T) {
	good := Options{URL: "http://127.0.0.1:1", Key: "k"}
	for want, change := range map[string]func(*Options){
		"Options.URL must begin":   func(o *Options) { o.URL = "127.0.0.1:8080" },
		"Options.Key must be set":  func(o *Options) { o.Key = "two words" },
		"Options.Timeout must be":  func(o *Options) { o.Timeout = -1 },
		"Options.Deadline must be": func(o *Options) { o.Deadline = -1 },
		"Options.Attempts must be": func(o *Options) { o.Attempts = -1 },
		"Options.MaxWait must be":  func(o *Options) { o.MaxWait = -1 },
		"Options.FailOpen must":    func(o *Options) { o.FailOpen = []string{""} },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "QUOTASVC_URL") {
		t.Errorf("without options: %v", err)
	}
	t.Setenv("QUOTASVC_URL", "http://127.0.0.1:1/")
	t.Setenv("QUOTASVC_KEY", "qk_x")
	if c, err := New(Options{}); err != nil || c.options.URL != "http://127.0.0.1:1" || c.options.Key != "qk_x" {
		t.Errorf("the environment: %v", err)
	}
}

func TestAPI_Retries_OneKeyUntilDecided(t *testing.T) {
	t.Parallel()
	s := newService(t, problem(503, "unavailable", "2"), problem(502, "", ""), problem(429, "rate_limited", "1"), granted)
	c, waits := clientOf(t, s)
	var meta Meta
	if _, err := c.Debit(t.Context(), DebitRequest{}, WithMeta(&meta)); err != nil || meta.Attempts != 4 {
		t.Fatalf("%v %+v", err, meta)
	}
	asked := s.requests()
	if slices.Sort(asked); asked[0] != asked[3] || !strings.HasPrefix(asked[0], "POST /v1/debits ") || len(asked[0]) < 30 {
		t.Errorf("%q", asked)
	}
	want := []time.Duration{2*time.Second + 50*time.Millisecond, 100 * time.Millisecond, time.Second + 200*time.Millisecond}
	if !slices.Equal(*waits, want) {
		t.Errorf("waits %v, want %v", *waits, want)
	}
}

func TestAPI_Final_NotSentAgain(t *testing.T) {
	t.Parallel()
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }
	read := func(c *Client) error { _, err := c.GetTenant(context.Background(), "t"); return err }
	for what, c := range map[string]struct {
		answer  http.HandlerFunc
		call    func(*Client) error
		class   error
		unknown bool
	}{
		"500":                {problem(500, "internal", ""), debit(), ErrUndecided, true},
		"400":                {problem(400, "invalid_argument", ""), debit(), ErrInvalid, false},
		"409":                {problem(409, "hold_not_active", ""), debit(), ErrConflict, false},
		"a PATCH":            {problem(503, "unavailable", "1"), func(c *Client) error { _, err := c.PatchWebhook(context.Background(), "w", WebhookPatch{}); return err }, ErrUndecided, false},
		"a POST without key": {problem(503, "unavailable", "1"), func(c *Client) error { _, err := c.StartRoll(context.Background(), RollRequest{}); return err }, ErrUndecided, false},
		"next month":         {problem(429, "quota_exceeded", "86400"), debit(), ErrDenied, false},
		"a kept denial":      {problem(429, "rate_limited", "1"), debit(KeepDenial()), ErrRateLimited, false},
		"a later code":       {problem(402, "of_a_later_version", ""), debit(), ErrDenied, false},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://login.example/", http.StatusFound)
		}, debit(), ErrUndecided, false},
		"a page":        {page, debit(), ErrUndecided, true},
		"a page read":   {page, read, ErrUndecided, false},
		"500 of a read": {problem(500, "internal", ""), read, ErrUndecided, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newService(t, c.answer)
			client, _ := clientOf(t, s)
			err := c.call(client)
			e := AsError(err)
			if e == nil || !errors.Is(err, c.class) || e.OutcomeUnknown != c.unknown || len(s.requests()) != 1 {
				t.Errorf("%+v after %d requests", err, len(s.requests()))
			}
		})
	}
}

func debit(options ...Option) func(*Client) error {
	return func(c *Client) error {
		_, err := c.API.Debit(context.Background(), DebitRequest{}, options...)
		return err
	}
}

func TestAPI_Attempts_EndByNumberBudgetAndDeadline(t *testing.T) {
	t.Parallel()
	s := newService(t, problem(503, "unavailable", "1"))
	c, waits := clientOf(t, s)
	if err := debit()(c); AsError(err).Attempts != 5 || AsError(err).RetryAfter != time.Second {
		t.Errorf("%+v", err)
	}
	if err := debit(WithDeadline(500 * time.Millisecond))(c); AsError(err).Attempts != 1 {
		t.Errorf("a wait that would pass the deadline: %+v", AsError(err))
	}
	for range 100 {
		_ = debit()(c)
	}
	// The budget permits ten retries at once, and one more retry for every ten calls.
	if n := len(*waits); n < 19 || n > 21 {
		t.Errorf("%d retries of 102 calls", n)
	}
}

// silent is a transport whose first two requests end at their time limit. The first request gets no answer. The second
// request gets an answer without its body. The third request gets a whole answer. If good is true, no request gets an
// answer.
type silent struct {
	good  bool
	asked int
}

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked++
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	switch {
	case s.asked == 1, s.good:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case s.asked == 2:
		answer.Body = io.NopCloser(unread{r.Context()})
	default:
		answer.Body = io.NopCloser(strings.NewReader(`{"operation_id":"o"}`))
	}
	return answer, nil
}

// unread is a body from which nothing can be read until its context ends.
type unread struct{ context.Context } //nolint:containedctx // that of its request

func (u unread) Read([]byte) (int, error) {
	<-u.Done()
	return 0, u.Err()
}

func TestAPI_NoAnswer_TimeoutThenAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := func(good bool) *Client {
			c, _ := clientOf(t, &service{Server: &httptest.Server{URL: "http://quotasvc.example"}}, func(o *Options) { o.HTTP = &http.Client{Transport: &silent{good: good}} })
			return c
		}
		var meta Meta
		if _, err := of(false).Debit(t.Context(), DebitRequest{}, WithTimeout(50*time.Millisecond), WithMeta(&meta)); err != nil || meta.Attempts != 3 {
			t.Errorf("%v %+v", err, meta)
		}
		err := debit(WithTimeout(20*time.Millisecond), WithDeadline(time.Second))(of(true))
		if !errors.Is(err, ErrUndecided) || AsError(err).Code != CodeTimeout || !AsError(err).OutcomeUnknown {
			t.Errorf("%+v", err)
		}
		if _, err := of(true).GetTenant(t.Context(), "t", WithTimeout(20*time.Millisecond), WithDeadline(time.Second)); AsError(err).Code != CodeTimeout || AsError(err).OutcomeUnknown {
			t.Errorf("a read: %+v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = of(true).Debit(ctx, DebitRequest{}, WithFailOpen(true))
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUndecided) || !AsError(err).OutcomeUnknown {
			t.Errorf("the caller's context ended: %+v", err)
		}
	})
}

func TestAPI_Parameters_CheckedAndEscaped(t *testing.T) {
	t.Parallel()
	s := newService(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	c, _ := clientOf(t, s)
	at := time.Date(2026, 11, 25, 1, 2, 3, 0, time.FixedZone("", 3600))
	if _, err := c.GetBalance(t.Context(), "a/b", "api calls", GetBalanceQuery{Subject: "u&1", AsOf: at}); err != nil {
		t.Fatal(err)
	}
	if got, want := s.requests()[0], "GET /v1/tenants/a%2Fb/balances/api%20calls?as_of=2026-11-25T00%3A02%3A03Z&subject=u%261 "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for want, call := range map[string]func() error{
		"getTenant: tenant is required": func() error { _, err := c.GetTenant(t.Context(), ""); return err },
		"takes no Idempotency-Key":      func() error { _, err := c.GetTenant(t.Context(), "t", WithKey("k")); return err },
		"1 to 255 visible ASCII":        func() error { return debit(WithKey("two words"))(c) },
		"must be above 0":               func() error { return debit(WithTimeout(-1))(c) },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestRequests_Zero_LeftOutUnlessItMeansSomething(t *testing.T) {
	t.Parallel()
	zero, null := int64(0), false
	var first int32
	for want, body := range map[string]any{
		`{"items":null,"tenant":""}`:                             DebitRequest{},
		`{"items":null,"max_stale_ms":0,"tenant":""}`:            CheckRequest{MaxStaleMs: &zero},
		`{"amount":0,"meter":"","priority":0,"source":""}`:       GrantRequest{Priority: &first},
		`{"prorate":false,"overrides":{"api_calls":null}}`:       TenantPatch{Prorate: &null, Overrides: OverridePatch{"api_calls": nil}},
		`{"every":"month","meter":"m","per_subject":0}`:          Allowance{Every: "month", Meter: "m", PerSubject: &zero},
		`{"policy":"allow","cap":0}`:                             Overage{Policy: "allow", Cap: &zero},
		`{"kind":"","normalize":[],"per":null,"rate":"1/s"}`:     LimitRequest{Rate: "1/s", Normalize: &[]string{}},
		`{"metadata":{"nested":{"n":1}},"tenant":"","items":[]}`: DebitRequest{Items: []Item{}, Metadata: Metadata{"nested": map[string]any{"n": 1}}},
	} {
		got, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		var a, b map[string]any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil {
			t.Fatal(string(got), want)
		}
		for name := range b {
			if fmt.Sprint(a[name]) != fmt.Sprint(b[name]) {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

func TestTasks_Wait_UntilAllEnd(t *testing.T) {
	t.Parallel()
	var k tasks
	first, second := k.start(), k.start()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	first()
	waited := make(chan error, 1)
	go func() { waited <- k.wait(t.Context()) }()
	second()
	if err := errors.Join(<-waited, k.wait(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestQuery_MembersOfAMap_AreParametersOfTheirOwn(t *testing.T) {
	t.Parallel()
	q := query{}
	(&ListTenantsQuery{Plan: "free", Metadata: map[string]string{"segment": "a&b", "vip": "true"}}).add(q)
	if got := url.Values(q).Encode(); got != "metadata.segment=a%26b&metadata.vip=true&plan=free" {
		t.Error(got)
	}
}
