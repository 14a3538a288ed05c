package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// These tests send bad input to the whole program. Bad input must never make a limit unlimited or stop the service.
// Tests in lua check the arguments of the scripts; tests in internal/httpapi check the form of bodies.

// problem is the body of an error.
type problem struct {
	Code             string
	Errors           []struct{ Field, Message string }
	ViolatedPolicies []string `json:"violated-policies"`
}

// post sends a body that may be invalid JSON.
func (in *instance) post(t testing.TB, method, path, body string, header ...string) (a answer, p problem) {
	t.Helper()
	all := append([]string{"Authorization", "Bearer " + testKey, "Content-Type", "application/json"}, header...)
	a = fetch(t, in.http, method, in.api+path, body, all...)
	_ = json.Unmarshal(a.body, &p) // the code is empty in an answer of another form
	return a, p
}

func TestPutLimit_InexactLimit_400NamesFieldAndBound(t *testing.T) {
	in, _ := parallelService(t, 1000)
	const bucket = `"per":["tenant"],"kind":"token_bucket"`
	for body, want := range map[string][2]string{
		`{` + bucket + `,"rate":"NaN/s"}`:                                                            {"rate", "60/s"},
		`{` + bucket + `,"rate":"Infinity/s"}`:                                                       {"rate", "60/s"},
		`{` + bucket + `,"rate":"-5/s"}`:                                                             {"rate", "60/s"},
		`{` + bucket + `,"rate":"0/s"}`:                                                              {"rate", "60/s"},
		`{` + bucket + `,"rate":"5/0s"}`:                                                             {"rate", "from 1 to 9007199254740991"},
		`{` + bucket + `,"rate":"99999999999999999999/s"}`:                                           {"rate", "60/s"},
		`{` + bucket + `,"rate":60}`:                                                                 {"rate", "60/s"},
		`{` + bucket + `,"rate":"5/s","cost":0}`:                                                     {"cost", "1 to 9007199254740991"},
		`{` + bucket + `,"rate":"5/s","cost":-1}`:                                                    {"cost", "1 to 9007199254740991"},
		`{` + bucket + `,"rate":"5/s","cost":1e9}`:                                                   {"cost", "integer"},
		`{` + bucket + `,"rate":"5/s","cost":9007199254740992}`:                                      {"cost", "9007199254740991"},
		`{` + bucket + `,"rate":"5/s","cost":6}`:                                                     {"cost", "capacity, 5"},
		`{` + bucket + `,"rate":"5/s","burst":0}`:                                                    {"burst", "1 to 9007199254740991"},
		`{` + bucket + `,"rate":"5/s","burst":-3}`:                                                   {"burst", "1 to 9007199254740991"},
		`{` + bucket + `,"rate":"7/day","burst":104250}`:                                             {"burst", "104249"},
		`{` + bucket + `,"rate":"104251/day"}`:                                                       {"burst", "104249"}, // the default burst is the rate's count
		`{` + bucket + `,"rate":"5/s","burst":9007199254740991}`:                                     {"burst", "at most"},
		`{"per":["tenant"],"kind":"fixed_window","rate":"5/day","timezone":"Mars/Olympus"}`:          {"timezone", "IANA"},
		`{"per":["tenant"],"kind":"fixed_window","rate":"5/day","timezone":"../../etc/passwd"}`:      {"timezone", "IANA"},
		`{"per":["tenant"],"kind":"sliding_log","rate":"1001/h"}`:                                    {"rate", "1000"},
		`{"per":["tenant"],"kind":"sliding_log","rate":"5/32d"}`:                                     {"rate", "31"},
		`{"per":["tenant"],"kind":"token_bucket","rate":"5/s","match":{"route":"/a/**/b"}}`:          {"match.route", "**"},
		`{"per":["tenant"],"kind":"token_bucket","rate":"5/s","costs":[{"route":"/a","cost":1000}]}`: {"costs[0].cost", "5"},
	} {
		a, p := in.post(t, "PUT", "/v1/limits/bad", body)
		assert.True(t, a.status == http.StatusBadRequest && p.Code == "invalid_argument" && len(p.Errors) == 1 && p.Errors[0].Field == want[0] &&
			strings.Contains(p.Errors[0].Message, want[1]), "%s: %s; want a fault of %s that names %q", body, a, want[0], want[1])
	}
	a, _ := in.post(t, "PUT", "/v1/limits/bad", `{`+bucket+`,"rate":"5/s","cost":NaN}`)
	assert.True(t, a.status == http.StatusBadRequest, "NaN is no JSON: %s", a)
	in.do(t, http.StatusNotFound, "GET", "/v1/limits/bad", "", nil)
	// These are the largest exact limits.
	for _, body := range []string{`{` + bucket + `,"rate":"7/day","burst":104249}`, `{"per":["tenant"],"kind":"sliding_log","rate":"1000/31d"}`} {
		in.do(t, http.StatusCreated, "PUT", "/v1/limits/good", "", json.RawMessage(body))
		in.do(t, http.StatusNoContent, "DELETE", "/v1/limits/good", "", nil)
	}
}

func TestConsume_SeventeenLimits_422NamesThemChargesNothing(t *testing.T) {
	in, _ := parallelService(t, 1000)
	plan, items := []object{{"meter": "api_calls", "amount": 1000, "every": "year", "anchor": "calendar"}}, []object{}
	for i := range 16 {
		meter := fmt.Sprintf("m%02d", i)
		in.do(t, http.StatusCreated, "PUT", "/v1/meters/"+meter, "", object{"unit": "call"})
		plan, items = append(plan, object{"meter": meter, "amount": 1000, "every": "year", "anchor": "calendar"}), append(items, object{"meter": meter, "amount": 1})
	}
	in.do(t, http.StatusOK, "PUT", "/v1/plans/basic", "", object{"allowances": plan, "apply": "now"})
	in.do(t, http.StatusOK, "PUT", "/v1/tenants/acme", "", object{"plan": "basic"})
	for i := range 16 {
		in.do(t, http.StatusCreated, "PUT", fmt.Sprintf("/v1/limits/of-m%02d", i), "", object{
			"per": []string{"tenant"}, "match": object{"meter": fmt.Sprintf("m%02d", i)}, "kind": "token_bucket", "rate": "3/day",
		})
	}
	in.limit(t, "all", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "3/day"})
	body := encode(t, object{"tenant": "acme", "items": items})
	for _, path := range []string{"/v1/check", "/v1/consume"} {
		a, p := in.post(t, "POST", path, body, "Idempotency-Key", "k"+path)
		assert.True(t, a.status == http.StatusUnprocessableEntity && p.Code == "too_many_limits" &&
			len(p.ViolatedPolicies) == 17, "%s: %s", path, a)
	}
	a, _ := in.post(t, "POST", "/v1/consume", encode(t, object{"tenant": "acme", "items": items[1:]}), "Idempotency-Key", "k16")
	made := decoded[struct{ Limits []struct{ Remaining int64 } }](t, a)
	require.True(t, a.status == http.StatusOK && len(made.Limits) == 16, "16 limits: %s", a)
	for i, l := range made.Limits {
		assert.True(t, l.Remaining == 2,
			"limit %d: %d are left, want 2: the refused requests were charged", i, l.Remaining)
	}
	// A limit is refused at its creation if every request would then have one limit too many.
	for i := range 14 { // "all" and the meter's limit make 16
		in.do(t, http.StatusCreated, "PUT", fmt.Sprintf("/v1/limits/general-%d", i), "", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "3/day"})
	}
	a, p := in.post(t, "PUT", "/v1/limits/general-14", `{"per":["tenant"],"kind":"token_bucket","rate":"3/day"}`)
	assert.True(t, a.status == http.StatusBadRequest && len(p.Errors) > 0, "one limit too many is stored: %s", a)
}

// tenantless are the only keys in Redis without a tenant: heartbeats, announcements of balances, and the epoch of the
// data.
var tenantless = []string{"rl:replicas", "quota:interest", "rl:life"}

func encode(t testing.TB, v any) string {
	t.Helper()
	return string(testenv.Must(t).Get(json.Marshal(v)))
}

// TestConsume_HostileNames_RefusedOrKeptOutOfRedisKeys: no text from a client becomes part of a Redis key unchanged.
func TestConsume_HostileNames_RefusedOrKeptOutOfRedisKeys(t *testing.T) {
	t.Parallel()
	options := testenv.Redis(t)
	env := backends(t)
	env[1] = fmt.Sprintf("QUOTASVC_REDIS_URL=redis://:%s@%s/%d", options.Password, options.Addr, options.DB)
	in := serve(t, env).setUp(t, 1000)
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/user", "", object{"per": []string{"tenant", "subject"}, "kind": "token_bucket", "rate": "1/day"})
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/route", "", object{"per": []string{"tenant", "route"}, "kind": "token_bucket", "rate": "1/day"})
	in.limit(t, "each", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "900/day"})
	hostile := []string{"<acme>", "a%7Db", "a\nb", "a\r\nSET x 1", "a\x00b", strings.Repeat("x", 256), strings.Repeat("}{\n", 1<<18)}
	for i, name := range hostile {
		for field, status := range map[string]int{"subject": http.StatusBadRequest, "tenant": http.StatusBadRequest} {
			body := debitOf("acme", "api_calls", 1)
			body[field] = name
			a, p := in.post(t, "POST", "/v1/consume", encode(t, body), "Idempotency-Key", fmt.Sprintf("k-%s-%d", field, i))
			ok := a.status == status && p.Code == "invalid_argument" && len(p.Errors) == 1
			assert.True(t, ok && (p.Errors[0].Field == field || p.Errors[0].Field == "body"), "%s %.20q: %.300s", field, name, a)
		}
	}
	// Braces and stars are characters of ids as all others.
	for i, name := range []string{"a}{b", "{acme}", "*", "rl:{acme}:user"} {
		for field, status := range map[string]int{"subject": http.StatusOK, "tenant": http.StatusNotFound} {
			body := debitOf("acme", "api_calls", 1)
			body[field] = name
			a, _ := in.post(t, "POST", "/v1/consume", encode(t, body), "Idempotency-Key", fmt.Sprintf("n-%s-%d", field, i))
			assert.True(t, a.status == status, "%s %s: %.300s", field, name, a)
		}
	}
	// A route may be any text. Each route has its own bucket.
	routes := []string{"/a}{b", "/{acme}", "/a\nb", "/*", "rl:{acme}:user", "/" + strings.Repeat("}{", 500)}
	for i, route := range routes {
		for n, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
			body := debitOf("acme", "api_calls", 1)
			body["route"] = route
			a, p := in.post(t, "POST", "/v1/consume", encode(t, body), "Idempotency-Key", fmt.Sprintf("r-%d-%d", i, n))
			if a.status == http.StatusBadRequest && len(p.Errors) == 1 && p.Errors[0].Field == "route" {
				break // too long, or not printable
			}
			assert.True(t, a.status == want, "route %.20q, time %d: %.300s", route, n, a)
		}
	}
	client := testenv.CloseAtEnd(t, redis.NewClient(options))
	keys, err := client.Keys(t.Context(), "*").Result()
	keys = slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(tenantless, key) })
	require.True(t, err == nil && len(keys) >= 3, "%v, %v", keys, err)
	for _, key := range keys {
		assert.True(t, strings.Count(key, "{") == 1 && strings.Count(key, "}") == 1 && strings.Contains(key, "{acme}") && !strings.ContainsAny(key, "\n\r* \x00") &&
			len(key) <= 128, "a key of Redis is %.200q", key)
	}
}

// The foreign values replace buckets of limits, leases and balances.
func TestLimits_ForeignRedisValue_NeitherFullNorOverwritten(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(ctx context.Context, c redis.Cmdable, key string) error{
		"text": func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.Set(ctx, key, "unlimited", 0).Err()
		},
		"number": func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.Set(ctx, key, "-1 -1 nan", 0).Err()
		},
		"bytes": func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.Set(ctx, key, bytes.Repeat([]byte{0xff}, 40), 0).Err()
		},
		"hash": func(ctx context.Context, c redis.Cmdable, key string) error { return c.HSet(ctx, key, "a", "b").Err() },
		"list": func(ctx context.Context, c redis.Cmdable, key string) error { return c.LPush(ctx, key, "a").Err() },
		"set": func(ctx context.Context, c redis.Cmdable, key string) error {
			return c.ZAdd(ctx, key, redis.Z{Score: 1, Member: "x"}).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, options := t.Context(), testenv.Redis(t)
			client := testenv.CloseAtEnd(t, redis.NewClient(options))
			env := backends(t)
			env[1] = fmt.Sprintf("QUOTASVC_REDIS_URL=redis://:%s@%s/%d", options.Password, options.Addr, options.DB)
			in := serve(t, env).setUp(t, 1000)
			in.do(t, http.StatusCreated, "PUT", "/v1/limits/builds", "", object{"per": []string{"tenant"}, "kind": "concurrency", "burst": 2})
			in.limit(t, "three", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "3/day"})
			in.do(t, http.StatusOK, "POST", "/v1/consume", "first", debitOf("acme", "api_calls", 1))
			in.do(t, http.StatusCreated, "POST", "/v1/leases", "first", object{"rule": "builds", "tenant": "acme"})
			var keys []string
			testenv.Eventually(t, func() bool { // the balance is published after the answer
				keys = client.Keys(ctx, "*{acme}*").Val()
				return len(keys) >= 3
			}, "three keys in Redis")
			spoilt := map[string]string{}
			for _, key := range keys {
				_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error { // the service may write a copy at any time
					p.Del(ctx, key)
					return spoil(ctx, p, key)
				})
				require.NoError(t, err)
				if !strings.HasPrefix(key, "quota:") { // a balance is a copy and may be overwritten
					spoilt[key] = client.Dump(ctx, key).Val()
				}
			}
			admitted, leased := 0, 0
			for i := range 12 {
				if a, err := in.send(ctx, "POST", "/v1/consume", fmt.Sprint("k", i), debitOf("acme", "api_calls", 1)); err == nil && a.status == http.StatusOK {
					admitted++
				} else if err != nil || a.status != http.StatusTooManyRequests {
					t.Errorf("consume %d: %v, %v", i, a, err)
				}
				if a, err := in.send(ctx, "POST", "/v1/leases", fmt.Sprint("l", i), object{"rule": "builds", "tenant": "acme"}); err == nil && a.status == http.StatusCreated {
					leased++
				} else if err != nil || a.status != http.StatusTooManyRequests {
					t.Errorf("lease %d: %v, %v", i, a, err)
				}
			}
			assert.True(t, admitted >= 1 && admitted <= 3 && leased >= 1 && leased <= 2,
				"%d admitted and %d leased; want 1 to 3 and 1 to 2: a share from the level that was known, and never more", admitted, leased)
			a := in.do(t, http.StatusOK, "POST", "/v1/check", "", debitOf("acme", "api_calls", 1))
			check := decoded[struct{ Items []struct{ Remaining int64 } }](t, a)
			assert.EqualValues(t, 1000-1-admitted, check.Items[0].Remaining, "check returns: %s", a)
			for key, before := range spoilt {
				assert.True(t, client.Dump(ctx, key).Val() == before, "%s was overwritten", key)
				require.NoError(t, client.Del(ctx, key).Err())
			}
			// After the foreign value is deleted, Redis decides again.
			a = in.do(t, http.StatusOK, "POST", "/v1/consume", "after", debitOf("acme", "api_calls", 1))
			assert.Empty(t, a.header.Get("X-RateLimit-Mode"), "%s %v", a, a.header)
		})
	}
}

// If Redis cannot count, that never means "no limit". The service detects the recovery of Redis without help.
func TestLimits_RedisCannotCount_OutageThatEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm, heal func(ctx context.Context, c *redis.Client, password string) error
		first      bool // break Redis before the service starts
	}{
		"another password": {
			func(ctx context.Context, c *redis.Client, _ string) error {
				return c.ConfigSet(ctx, "requirepass", "another").Err()
			},
			func(ctx context.Context, c *redis.Client, password string) error {
				return c.ConfigSet(ctx, "requirepass", password).Err()
			}, true,
		},
		"no memory": {
			func(ctx context.Context, c *redis.Client, _ string) error {
				return c.ConfigSet(ctx, "maxmemory", "1").Err()
			},
			func(ctx context.Context, c *redis.Client, _ string) error {
				return c.ConfigSet(ctx, "maxmemory", "0").Err()
			}, false,
		},
		"read-only replica": {
			func(ctx context.Context, c *redis.Client, _ string) error {
				return c.ReplicaOf(ctx, "127.0.0.1", "1").Err()
			},
			func(ctx context.Context, c *redis.Client, _ string) error { return c.ReplicaOf(ctx, "NO", "ONE").Err() }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisPrivate(t)
			client := testenv.CloseAtEnd(t, redis.NewClient(server.Options()))
			harm := func() {
				require.NoError(t, c.harm(t.Context(), client, server.Options().Password))
			}
			if c.first {
				harm()
			}
			in := serve(t, using(testenv.PostgresService(t), server.URL, "QUOTASVC_LOG_LEVEL=warn")).setUp(t, 1000)
			in.limit(t, "three", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "3/day"})
			if !c.first {
				harm()
			}
			consume := func(key string) answer {
				started := time.Now()
				a, err := in.send(t.Context(), "POST", "/v1/consume", key, debitOf("acme", "api_calls", 1))
				require.NoError(t, err)
				// Ten times a budget of 120 ms and one commit.
				assert.Less(t, time.Since(started), 20*time.Second, "a request")
				return a
			}
			admitted := 0
			for i := range 10 {
				a := consume(fmt.Sprint("k", i))
				if a.status == http.StatusOK {
					admitted++
				}
				assert.Contains(t, []int{http.StatusOK, http.StatusTooManyRequests}, a.status, a)
				assert.Equal(t, "local", a.header.Get("X-RateLimit-Mode"), a)
			}
			assert.Equal(t, 3, admitted, "admitted")
			assert.NotContains(t, in.stderr.String(), server.Options().Password, "the log has the password")
			require.NoError(t, c.heal(t.Context(), client, server.Options().Password))
			i := 0
			testenv.Eventually(t, func() bool { // the breaker is open for five seconds
				i++
				return consume(fmt.Sprint("h", i)).header.Get("X-RateLimit-Mode") != "local"
			}, "a decision by Redis, which works again")
		})
	}
}
