package e2e

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/client/quotahttp"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// backendOf starts an HTTP server whose requests are charged. /fail answers 502, /panic panics, /missing answers 404,
// and /flush sends its header early. Other paths are served.
func backendOf(t testing.TB, c *client.Client, change func(*quotahttp.Options)) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	o := quotahttp.Options{Rules: quotahttp.Rules[*http.Request]{
		Meter: "api_calls",
		Tenant: func(r *http.Request) (string, error) {
			if r.URL.Path == "/healthz" {
				return "", quotahttp.ErrNotCounted
			}
			return r.Header.Get("X-Org"), nil
		},
	}}
	if change != nil {
		change(&o)
	}
	m := testenv.Must(t).Get(quotahttp.New(c, o))
	var served atomic.Int64
	server := httptest.NewServer(m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		switch r.URL.Path {
		case "/fail":
			http.Error(w, "broken", http.StatusBadGateway)
		case "/panic":
			panic(http.ErrAbortHandler)
		case "/missing":
			http.NotFound(w, r)
		case "/flush":
			w.(http.Flusher).Flush()
			assert.NoError(t, http.NewResponseController(w).SetWriteDeadline(time.Now().Add(testenv.Patience)))
		}
		_, _ = io.WriteString(w, "served")
	})))
	t.Cleanup(server.Close)
	return server, &served
}

func get(t testing.TB, server *httptest.Server, path, org string, header ...string) answer {
	t.Helper()
	got, _ := exchange(t.Context(), server.Client(), http.MethodGet, server.URL+path, "",
		append([]string{"X-Org", org}, header...)...)
	return got // empty if there was no answer
}

func TestSDKHTTP_Requests_ChargedWithHeaders(t *testing.T) {
	in, _ := parallelService(t, 100)
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/slow", "", object{"per": []string{"tenant", "ip"}, "kind": "fixed_window", "rate": "1/day", "match": object{"route": "/slow"}})
	c := sdk(t, in, losing(1, "/consume"))
	server, served := backendOf(t, c, func(o *quotahttp.Options) { o.IP = quotahttp.PeerIP })
	got := get(t, server, "/", "acme")
	assert.True(t, got.status == 200 && string(got.body) == "served" && got.header.Get("X-Quota-Remaining") == "99" && got.header.Get("X-Quota-Limit") == "100" &&
		got.header.Get("X-Quota-Reset") != "", "%s %v", got, got.header)
	testenv.Eventually(t, func() bool {
		got := get(t, server, "/slow", "acme")
		return got.header.Get("RateLimit") != "" && got.header.Get("RateLimit-Policy") != ""
	}, "the limit is handed on")
	got = get(t, server, "/slow", "acme")
	assert.True(t, got.status == 429 && got.header.Get("Retry-After") != "" && strings.Contains(string(got.body), "rate_limited") &&
		got.header.Get("Content-Type") == "application/problem+json", "%s %v", got, got.header)
	before, left := served.Load(), in.balance(t, "acme", "api_calls").Remaining // each request to /slow had its price
	got = get(t, server, "/healthz", "")
	assert.True(t, got.status == 200 && got.header.Get("X-Quota-Limit") == "", "%s %v", got, got.header)
	for range left + 2 {
		got = get(t, server, "/", "acme")
	}
	assert.True(t, got.status == 429 && got.header.Get("X-Quota-Remaining") == "0" &&
		strings.Contains(string(got.body), "quota_exceeded"), "%s %v", got, got.header)
	in.acme().wantLeft(t, 0)
	// The additional request is that to /healthz.
	assert.Equal(t, left+1, served.Load()-before, "requests that were served")
}

func TestSDKHTTP_FailedHandlers_Refunded(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance)
	server, _ := backendOf(t, c, func(o *quotahttp.Options) { o.Cost = func(*http.Request) int64 { return 5 } })
	assert.Equal(t, 502, get(t, server, "/fail", in.tenant).status)
	get(t, server, "/panic", in.tenant)
	get(t, server, "/missing", in.tenant) // a 404, which is charged
	got := get(t, server, "/flush", in.tenant)
	assert.True(t, got.status == 200 && string(got.body) == "served", got)
	closeSDK(t, c)
	in.wantLeft(t, 90)
}

func TestSDKHTTP_ClientsKey_PaidOnce(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance)
	server, _ := backendOf(t, c, func(o *quotahttp.Options) {
		o.IdempotencyKey = func(r *http.Request) string { return r.Header.Get("Idempotency-Key") }
	})
	get(t, server, "/", in.tenant, "Idempotency-Key", "order-17")
	get(t, server, "/", in.tenant, "Idempotency-Key", "order-17")
	closeSDK(t, c)
	in.wantLeft(t, 99)
}

func TestSDKHTTP_BackendsFault_NoAnswerOfTheService(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	var last atomic.Pointer[error]
	server, served := backendOf(t, sdk(t, in.instance), func(o *quotahttp.Options) {
		o.OnError = func(w http.ResponseWriter, _ *http.Request, err error) {
			last.Store(&err)
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	for org, want := range map[string]error{"nobody": client.ErrTenantNotFound, "no id!": client.ErrInvalid, "": nil} {
		got := get(t, server, "/", org)
		assert.True(t, got.status == 500 && !bytes.Contains(got.body, []byte("tenant")) && last.Load() != nil &&
			(want == nil || errors.Is(*last.Load(), want)), "%q: %s", org, got)
	}
	assert.Zero(t, served.Load(), "a handler ran")
	_, err := quotahttp.New(sdk(t, in.instance), quotahttp.Options{})
	assert.True(t, err != nil && strings.Contains(err.Error(), "Meter"), "options without a meter: %v", err)
}

func TestSDKHTTP_ServiceAway_RefusedOrPasses(t *testing.T) {
	in := sdkService.parallel(t).account(t, 1)
	c := sdk(t, in.instance, func(o *client.Options) { o.URL = "http://" + freeAddress(t) })
	closed, served := backendOf(t, c, nil)
	got := get(t, closed, "/", in.tenant)
	assert.True(t, got.status == 503 && got.header.Get("Retry-After") != "" && served.Load() == 0 &&
		strings.Contains(string(got.body), `"unavailable"`), "%s %v", got, got.header)
	pass := true
	open, served := backendOf(t, c, func(o *quotahttp.Options) { o.FailOpen = &pass })
	got = get(t, open, "/", in.tenant)
	assert.True(t, got.status == 200 && served.Load() == 1, "%s", got)
}

func TestSDKHTTP_LostCharge_TakenBack(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance, losing(1, "/consume"), func(o *client.Options) { o.Attempts = 1 })
	server, served := backendOf(t, c, nil)
	got := get(t, server, "/", in.tenant)
	assert.True(t, got.status == 503 && served.Load() == 0, "%s", got)
	closeSDK(t, c) // waits for the charge
	in.wantLeft(t, 100)
}

func TestSDKHTTP_Blocked_WithoutReason(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	in.do(t, http.StatusCreated, "PUT", "/v1/blocks/tenant/"+in.tenant, "", object{"action": "block", "reason": "fraud at the bank"})
	server, served := backendOf(t, sdk(t, in.instance), nil)
	testenv.Eventually(t, func() bool { return get(t, server, "/", in.tenant).status == 403 }, "the block counts")
	before := served.Load()
	got := get(t, server, "/", in.tenant)
	assert.True(t, got.status == 403 && !bytes.Contains(got.body, []byte("fraud")) && served.Load() == before, "%s", got)
}
