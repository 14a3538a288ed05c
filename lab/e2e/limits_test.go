package e2e

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// The header X-RateLimit-Mode is sent even for a limit with on_backend_error open. For such a limit no other header
// is sent.
func TestLimits_NoRedis_EveryAnswerSaysLocal(t *testing.T) {
	t.Parallel()
	const mode = "X-RateLimit-Mode"
	redis := testenv.RedisPrivate(t)
	env := using(testenv.PostgresService(t), redis.URL, "QUOTASVC_LOG_LEVEL=warn",
		"QUOTASVC_LEGACY_HEADERS=x-ratelimit-epoch,ratelimit")
	in := serve(t, env).setUp(t, 1000)
	limit := func(route, policy string) object {
		return object{"per": []string{"tenant"}, "match": object{"route": route}, "kind": "token_bucket", "rate": "60/min", "on_backend_error": policy}
	}
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/open", "", limit("/open", "open"))
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/closed", "", limit("/closed", "closed"))
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/builds", "", object{"per": []string{"tenant"}, "kind": "concurrency", "burst": 9})
	in.limit(t, "last", object{"per": []string{"tenant"}, "match": object{"meter": "api_calls"}, "kind": "token_bucket", "rate": "1000/min", "mode": "shadow", "on_backend_error": "open"})
	on := func(route string) object {
		body := debitOf("acme", "api_calls", 1)
		body["route"] = route
		return body
	}
	lease := object{"rule": "builds", "tenant": "acme"}

	for path, body := range map[string]object{"/v1/check": on("/open"), "/v1/consume": on("/open"), "/v1/leases": lease} {
		before := time.Now().Unix()
		a, err := in.send(t.Context(), "POST", path, "with"+path, body)
		assert.True(t, err == nil && a.status < 300 && a.header.Get(mode) == "" && a.header.Get("RateLimit") != "",
			"%s with Redis: %v %v %v", path, a, a.header, err)
		reset, err := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64)
		assert.True(t, err == nil && reset >= before && reset <= time.Now().Unix()+60 &&
			a.header.Get("RateLimit-Limit") != "", "%s: the older headers are %v", path, a.header)
	}
	redis.Kill()
	testenv.Eventually(t, func() bool { // until then, a check may be decided from memory
		a, err := in.send(t.Context(), "POST", "/v1/check", "", on("/open"))
		return err == nil && a.header.Get(mode) == "local"
	}, "a decision without Redis")
	for path, body := range map[string]object{"/v1/check": on("/open"), "/v1/consume": on("/open"), "/v1/leases": lease} {
		a, err := in.send(t.Context(), "POST", path, "without"+path, body)
		assert.True(t, err == nil && a.status < 300 && a.header.Get(mode) == "local",
			"%s without Redis: %v %v %v", path, a, a.header, err)
	}
	for _, path := range []string{"/v1/check", "/v1/consume"} {
		a := in.do(t, http.StatusServiceUnavailable, "POST", path, "closed"+path, on("/closed"))
		assert.True(t, a.header.Get(mode) == "local" && a.header.Get("Retry-After") != "",
			"%s of a closed limit: %v", path, a.header)
	}
}
