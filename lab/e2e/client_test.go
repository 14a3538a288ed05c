package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

const testKey = "0123456789abcdef0123456789abcdef"

// backends returns the environment of instances that share a new database and a Redis.
func backends(t testing.TB) []string {
	t.Helper()
	return using(testenv.PostgresService(t), testenv.RedisURL(t), "QUOTASVC_LOG_LEVEL=warn")
}

// using returns the environment of instances that use these servers, with further settings.
func using(databaseURL, redisURL string, more ...string) []string {
	return append([]string{
		"QUOTASVC_DATABASE_URL=" + databaseURL, "QUOTASVC_REDIS_URL=" + redisURL, "QUOTASVC_ADMIN_KEY=" + testKey,
	}, more...)
}

// instance is a running service with a client.
type instance struct {
	*process
	api, ops string
	http     *http.Client
}

// serve starts an instance on free ports, or with the API at the given address.
func serve(t testing.TB, env []string, listen ...string) *instance {
	t.Helper()
	return serveBy(t, quotasvc(t), env, listen...)
}

// serveBy starts an instance like serve, with the program at path.
func serveBy(t testing.TB, path string, env []string, listen ...string) *instance {
	t.Helper()
	args := []string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}
	if len(listen) > 0 {
		args[2] = listen[0]
	}
	p := launchBy(t, path, env, args...)
	transport := &http.Transport{MaxIdleConnsPerHost: 512}
	t.Cleanup(transport.CloseIdleConnections)
	return &instance{
		process: p, api: p.line("API "), ops: p.line("ops "),
		http: &http.Client{Transport: transport, Timeout: testenv.Patience},
	}
}

// answer is an HTTP response whose body was read.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

func (a answer) into(t testing.TB, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(a.body, v), "%s", a)
}

// decoded returns the body of an answer.
func decoded[T any](t testing.TB, a answer) (v T) {
	t.Helper()
	a.into(t, &v)
	return v
}

// exchange makes a request with a client. header lists names of headers, each followed by its value. exchange returns
// an error if no complete answer arrives.
func exchange(ctx context.Context, client *http.Client, method, url, body string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{resp.StatusCode, resp.Header, raw}, nil
}

// fetch makes a request like exchange, and fails the test if no complete answer arrives.
func fetch(t testing.TB, client *http.Client, method, url, body string, header ...string) answer {
	t.Helper()
	got, err := exchange(t.Context(), client, method, url, body, header...)
	require.NoError(t, err, "%s %s", method, url)
	return got
}

// send makes a request. It returns an error if no complete answer arrives.
func (in *instance) send(ctx context.Context, method, path, key string, body any) (answer, error) {
	var text []byte
	header := []string{"Authorization", "Bearer " + testKey}
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
		header = append(header, "Content-Type", "application/json")
	}
	if key != "" {
		header = append(header, "Idempotency-Key", key)
	}
	return exchange(ctx, in.http, method, in.api+path, string(text), header...)
}

// do makes a request and returns the answer. If the answer has another status, do fails the test.
func (in *instance) do(t testing.TB, status int, method, path, key string, body any) answer {
	t.Helper()
	got, err := in.send(t.Context(), method, path, key, body)
	require.NoError(t, err, "%s %s", method, path)
	require.True(t, got.status == status, "%s %s: got %s, want %d", method, path, got, status)
	return got
}

type object = map[string]any

// debitOf returns the body of a debit.
func debitOf(tenant, meter string, amount int64) object {
	return object{"tenant": tenant, "items": []object{{"meter": meter, "amount": amount}}}
}

// setUp creates tenant acme with a plan that grants `amount` units of api_calls per year.
func (in *instance) setUp(t testing.TB, amount int64) *instance {
	t.Helper()
	in.do(t, http.StatusCreated, "PUT", "/v1/meters/api_calls", "", object{"unit": "call"})
	in.do(t, http.StatusCreated, "PUT", "/v1/plans/basic", "", object{"allowances": []object{
		{"meter": "api_calls", "amount": amount, "every": "year", "anchor": "calendar"},
	}})
	in.do(t, http.StatusCreated, "PUT", "/v1/tenants/acme", "", object{"plan": "basic"})
	return in
}

// parallelService makes the test parallel, and starts an instance with a new database and setUp. It returns the instance
// and its environment.
func parallelService(t *testing.T, amount int64) (in *instance, env []string) {
	t.Helper()
	t.Parallel()
	env = backends(t)
	return serve(t, env).setUp(t, amount), env
}

// newSecret creates an API key and returns its secret.
func (in *instance) newSecret(t testing.TB, key object) string {
	t.Helper()
	return decoded[struct{ Secret string }](t, in.do(t, http.StatusCreated, "POST", "/v1/keys", "", key)).Secret
}

// newWebhook creates a webhook and returns its id and its secret.
func (in *instance) newWebhook(t testing.TB, webhook object) (id, secret string) {
	t.Helper()
	made := decoded[struct {
		ID     string `json:"webhook_id"`
		Secret string
	}](t, in.do(t, http.StatusCreated, "POST", "/v1/webhooks", "", webhook))
	return made.ID, made.Secret
}

// sellTokens creates the tenant ada. Ada has 500 tokens a year. After that, each started thousand tokens costs one
// coin.
func (in *instance) sellTokens(t testing.TB) {
	t.Helper()
	in.do(t, http.StatusCreated, "PUT", "/v1/meters/tokens", "", object{"unit": "tokens"})
	in.do(t, http.StatusCreated, "PUT", "/v1/meters/coins", "", object{"unit": "coins"})
	in.do(t, http.StatusCreated, "PUT", "/v1/plans/ai", "", object{"allowances": []object{
		{"meter": "tokens", "amount": 500, "every": "year", "anchor": "calendar", "overflow": object{"meter": "coins", "price": object{"units": 1, "per": 1000}}},
		{"meter": "coins", "amount": 10, "every": "year", "anchor": "calendar"},
	}})
	in.do(t, http.StatusCreated, "PUT", "/v1/tenants/ada", "", object{"plan": "ai"})
}

// balance is the part of the service's answer about a balance that the tests read.
type balance struct {
	Granted, Used, Remaining int64
	Period                   struct{ Start, End *time.Time }
}

func (in *instance) balance(t testing.TB, tenant, meter string) balance {
	t.Helper()
	return decoded[balance](t, in.do(t, http.StatusOK, "GET", "/v1/tenants/"+tenant+"/balances/"+meter, "", nil))
}
