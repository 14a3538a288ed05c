package httpapi

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// unbacked returns a server without backends. h, if not nil, is the handler of an additional route.
func unbacked(t testing.TB, h handler) *service {
	t.Helper()
	s := newHandlerService(t)
	if h != nil {
		s.server.echo.POST("/v1/rolls/x/y", s.server.guard(route{public: true, handler: h}))
	}
	return s
}

func TestKeys_EveryOperationNeedsOne(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t)
	for _, r := range s.server.routes() {
		if r.public {
			continue
		}
		path := strings.NewReplacer(":tenant", "a", ":meter", "a", ":plan", "a", ":rule", "a", ":roll_id", "a", ":operation_id", "a", ":gateway", "nginx").Replace(r.path)
		r.method = strings.Replace(r.method, methodAny, http.MethodPost, 1)
		for _, authorization := range [][]string{
			{"Authorization"},
			{"Authorization", ""},
			{"Authorization", "Bearer"},
			{"Authorization", "Bearer "},
			{"Authorization", testKey},
			{"Authorization", "Basic " + testKey},
			{"Authorization", "Bearer " + testKey + "x"},
			{"Authorization", "Bearer " + testKey[1:]},
		} {
			a := s.call(r.method, path, "{}", authorization...)
			if a.status == 429 {
				a.problem(429, "rate_limited") // too many wrong keys were sent
				continue
			}
			a.problem(401, "unauthenticated")
			assert.EqualValues(t, `Bearer realm="quotasvc"`, a.header.Get("WWW-Authenticate"), "headers: %v", a.header)
		}
	}
	for _, authorization := range []string{"Bearer " + testKey, "bearer " + testKey, "BEARER  " + testKey} {
		s.call("GET", "/v1/meters?limit=0", "", "Authorization", authorization).refused("limit")
	}
}

func TestRouter_Unrouted_404Or405(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v2/debits", "/v1/debit", "/v1/debits/", "/v1/debits/x/y", "/v1/tenants/a/b", "//v1/debits", "/v1/meters/", "/%00", "/metrics"} {
		p := s.call("GET", path, "").problem(404, "not_found")
		assert.True(t, strings.HasPrefix(p.Detail, "no such endpoint: GET /"), "%s: %q", path, p.Detail)
	}
	for path, allow := range map[string]string{
		"/v1/debits": "POST", "/v1/meters/m": "DELETE GET PUT", "/v1/tenants/t/balances": "GET", "/v1/tenants/t": "GET PATCH PUT",
	} {
		a := s.call("TRACE", path, "")
		a.problem(405, "method_not_allowed")
		for _, method := range strings.Fields(allow) {
			assert.Contains(t, a.header.Get("Allow"), method,
				"%s: Allow %q lacks %s", path, a.header.Get("Allow"), method)
		}
	}
}

func TestRequestID_TakenOrMade(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t)
	seen := map[string]bool{}
	for _, c := range []struct {
		given string
		fit   bool
	}{
		{"abc", true}, {strings.Repeat("x", 128), true}, {"~!{}\"", true}, {"", false}, {"a b", false}, {strings.Repeat("x", 129), false}, {"é", false}, {"a\tb", false},
	} {
		a := s.call("GET", "/v1/nothing", "", headerRequestID, c.given)
		got := a.problem(404, "not_found").RequestID
		assert.True(t, (!c.fit || got == c.given) && (c.fit || got != c.given && len(got) == 32 && !seen[got]),
			"%q became %q", c.given, got)
		seen[got] = true
	}
	a := s.call("GET", "/v1/openapi.yaml", "", headerRequestID, "mine")
	assert.EqualValues(t, "mine", a.header.Get(headerRequestID), "headers: %v", a.header)
}

func TestServe_Panic_500(t *testing.T) {
	t.Parallel()
	s := unbacked(t, func(*request) error { panic("the word is xyzzy") })
	for range 3 {
		a := s.bare("/v1/rolls/x/y")
		p := a.problem(500, "internal")
		assert.True(t, !strings.Contains(string(a.body), "xyzzy") && !strings.Contains(p.Detail, "panic"), "%s", a.body)
		id := a.header.Get(headerRequestID)
		s.eventually("the access line", func() bool { return s.log.With(id) != "" })
		if line := s.log.With(id); !strings.Contains(line, "the word is xyzzy") || !strings.Contains(line, "server_test.go") {
			t.Errorf("the access line has no cause: %s", line)
		}
	}
	s.call("GET", "/v1/openapi.yaml", "").want(200)
}

func TestProblemOf_EveryError(t *testing.T) {
	t.Parallel()
	var next atomic.Value
	s := unbacked(t, func(*request) error { return next.Load().(struct{ error }).error })
	for err, want := range map[error]string{
		errors.New("dial tcp 10.0.0.1: secret"):                                                                 "500 internal",
		fmt.Errorf("consume: %w", &errcode.Error{Code: errcode.TenantNotFound, Detail: "no tenant"}):            "404 tenant_not_found",
		errors.Join(&errcode.Error{Code: errcode.Unavailable, Detail: "away", RetryAfter: time.Second}, io.EOF): "503 unavailable",
		&errcode.Error{Code: "a_code_of_the_future", Detail: "secret"}:                                          "500 internal",
		&errcode.Error{Code: errcode.Internal, Detail: "secret"}:                                                "500 internal",
		&errcode.Error{Code: errcode.OutcomeUnknown, Detail: "maybe"}:                                           "503 outcome_unknown",
		&errcode.Error{Code: errcode.QueueFull, RetryAfter: 2 * time.Second}:                                    "503 queue_full",
		fmt.Errorf("wait: %w", context.DeadlineExceeded):                                                        "503 unavailable",
		echo.NewHTTPError(http.StatusTeapot, "secret"):                                                          "500 internal",
		fmt.Errorf("wrapped: %w", echo.ErrNotFound):                                                             "404 not_found",
	} {
		next.Store(struct{ error }{err})
		a := s.bare("/v1/rolls/x/y")
		p := decoded[client.Problem](a)
		if got := fmt.Sprint(a.status, " ", p.Code); got != want || strings.Contains(string(a.body), "secret") {
			t.Errorf("%v: %s, want %s: %s", err, got, want, a.body)
		}
	}
}

func TestServe_Deadline_503(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t, func(c *Config) { c.RequestTimeout = 20 * time.Millisecond })
	s.server.echo.POST("/v1/rolls/x/y", s.server.guard(route{public: true, handler: func(rc *request) error {
		<-rc.ctx.Done()
		return fmt.Errorf("wait for a backend: %w", rc.ctx.Err())
	}}))
	s.bare("/v1/rolls/x/y").problem(503, "unavailable")
}

func TestAccessLog_OneLineWithoutSecrets(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t)
	s.call("GET", "/v1/openapi.yaml", "", headerRequestID, "r1").want(200)
	s.call("PUT", "/v1/meters/a%20b", "{}", headerRequestID, "r2").want(400)
	s.call("GET", "/nothing/here?key="+testKey, "", headerRequestID, "r3").want(404)
	s.call("GET", "/v1/tenants/acme/grants?limit=0", "", headerRequestID, "r4").want(400)
	s.call("GET", "/v1/tenants/a%20b/grants", "", headerRequestID, "r5").want(400)
	want := map[string]string{
		"r1": "GET /v1/openapi.yaml 200  ", "r2": "PUT /v1/meters/:meter 400 invalid_argument ", "r3": "GET  404 not_found ",
		"r4": "GET /v1/tenants/:tenant/grants 400 invalid_argument acme", "r5": "GET /v1/tenants/:tenant/grants 400 invalid_argument ",
	}
	got := map[string]string{}
	s.eventually("all lines", func() bool { return len(s.log.Lines()) >= len(want) })
	for _, line := range s.log.Lines() {
		var l struct {
			Msg       string `json:"msg"`
			Level     string `json:"level"`
			RequestID string `json:"request_id"`
			Method    string `json:"method"`
			Route     string `json:"route"`
			Status    int    `json:"status"`
			Code      string `json:"code"`
			Tenant    string `json:"tenant"`
			Took      *int64 `json:"duration_us"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &l), "%s", line)
		_, twice := got[l.RequestID]
		assert.True(t, !twice && l.Msg == "request" && l.Level == "INFO" && l.Took != nil, "%s", line)
		got[l.RequestID] = fmt.Sprint(l.Method, " ", l.Route, " ", l.Status, " ", l.Code, " ", l.Tenant)
		assert.NotContains(t, line, testKey, "the line tells the key")
	}
	assert.Equal(t, want, got)
}

func TestAccessLog_NothingOfPreviousRequest(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t)
	for i := range 20 { // request objects are reused
		s.call("GET", "/v1/tenants/acme/grants?limit=0", "", headerRequestID, fmt.Sprint("bad", i)).want(400)
		id := fmt.Sprint("good", i)
		s.call("GET", "/v1/openapi.yaml", "", headerRequestID, id).want(200)
		s.eventually("the access line", func() bool { return s.log.With(id) != "" })
		if line := s.log.With(id); strings.Contains(line, "acme") || strings.Contains(line, `"code"`) || strings.Contains(line, `"error"`) {
			t.Fatalf("%s", line)
		}
	}
}

func TestServe_ClientGone_499(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	s := unbacked(t, func(rc *request) error {
		close(entered)
		<-rc.ctx.Done()
		return &errcode.Error{Code: errcode.Unavailable, Detail: "the caller went away"}
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-entered
		leave()
	}()
	r := s.request("POST", "/v1/rolls/x/y", nil, headerRequestID, "gone").WithContext(ctx)
	if response, err := s.client.Do(r); err == nil {
		t.Error(response.Body.Close())
	}
	s.eventually("the access line", func() bool { return s.log.With("gone") != "" })
	line := s.log.With("gone")
	assert.True(t, strings.Contains(line, `"status":499`) && strings.Contains(line, `"level":"INFO"`), "%s", line)
}

func TestRetryAfter_WaitsForLaterLimit(t *testing.T) {
	t.Parallel()
	s := unbacked(t, func(rc *request) error {
		rc.limits = []gate.LimitVerdict{{Rule: "slow", Allowed: true, Policy: `"slow";q=1;w=60`, Next: 59500 * time.Millisecond}}
		return &errcode.Error{Code: errcode.QueueFull, RetryAfter: 2 * time.Second}
	})
	a := s.bare("/v1/rolls/x/y")
	a.problem(503, "queue_full")
	assert.True(t, a.number(headerRetryAfter) == 60 && a.header.Get("RateLimit") == `"slow";r=0;t=60`,
		"headers: %v", a.header)
}

func TestMetrics_LabelsRouteMethodStatus(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t)
	for i := range 50 {
		s.call("GET", fmt.Sprintf("/nothing/%d", i), "")
		s.call("GET", fmt.Sprintf("/v1/tenants/t%d/grants?limit=0", i), "")
		s.call(fmt.Sprintf("METHOD%d", i), "/v1/debits", "")
	}
	var body string
	s.eventually("all requests are counted", func() bool { // a request is counted after its answer
		body = s.metrics()
		return strings.Contains(body, "quotasvc_http_in_flight_requests 0")
	})
	for _, line := range []string{
		`quotasvc_http_requests_total{method="GET",route="none",status="404"} 50`,
		`quotasvc_http_requests_total{method="GET",route="/v1/tenants/:tenant/grants",status="400"} 50`,
		`quotasvc_http_requests_total{method="other",route="/v1/debits",status="405"} 50`,
		`quotasvc_http_request_duration_seconds_count{method="GET",route="none"} 50`,
	} {
		assert.Contains(t, body, line, "/metrics lacks %s", line)
	}
	assert.Equal(t, 3, strings.Count(body, "quotasvc_http_requests_total{"), "series")
}

// metrics returns the text that the service answers at /metrics.
func (s *service) metrics() string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.ops, nil)
	s.check(err)
	return string(s.exchange(r).body)
}

func TestService_PostgresDown_503(t *testing.T) {
	t.Parallel()
	pg := testenv.PostgresPrivate(t)
	s := newServiceOn(t, pg.URL)
	pg.Stop()
	s.debit("k", "acme", "calls", 1).problem(503, "unavailable")
	s.call("GET", "/v1/meters", "").problem(503, "unavailable")
	s.call("GET", "/v1/tenants/acme/balances", "").problem(503, "unavailable")
	s.call("POST", "/v1/check", demandOf("acme", "calls", 1)).problem(503, "unavailable")
	pg.Start()
	s.eventually("it answers again", func() bool { return s.call("GET", "/v1/meters", "").status == http.StatusOK })
}
