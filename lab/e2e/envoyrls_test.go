package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// rateLimited is an instance that answers Envoy's rate limit requests, with the tenant acme.
type rateLimited struct {
	*instance
	address string
	conn    *grpc.ClientConn
}

func newRateLimited(t testing.TB, transport credentials.TransportCredentials, env ...string) *rateLimited {
	t.Helper()
	return rateLimitedBy(t, transport, backends(t), env...)
}

// rateLimitedBy is newRateLimited with the environment of the instance's servers.
func rateLimitedBy(t testing.TB, transport credentials.TransportCredentials, servers []string, env ...string) *rateLimited {
	t.Helper()
	in := serve(t, slices.Concat(servers, []string{"QUOTASVC_LOG_LEVEL=info", "QUOTASVC_ENVOY_RLS_LISTEN=127.0.0.1:0"}, env))
	r := &rateLimited{instance: in, address: in.line("envoy-rls ")}
	r.conn = r.dial(t, transport)
	return r
}

// dial returns a client that behaves like Envoy. It does not wait for a connection, and does not repeat a request
// that the server has processed.
func (r *rateLimited) dial(t testing.TB, transport credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn := testenv.Must(t).Get(grpc.NewClient(r.address, grpc.WithTransportCredentials(transport)))
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// envoyDescriptor returns a descriptor with the given entries, for example "tenant=acme".
func envoyDescriptor(entries ...string) *ratelimitv3.RateLimitDescriptor {
	d := &ratelimitv3.RateLimitDescriptor{}
	for _, e := range entries {
		key, value, _ := strings.Cut(e, "=")
		d.Entries = append(d.Entries, &ratelimitv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

// charge sends a request for rate limits with an API key.
func (r *rateLimited) charge(t testing.TB, key string, hits uint32, descriptors ...*ratelimitv3.RateLimitDescriptor) (*rls.RateLimitResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
	}
	return rls.NewRateLimitServiceClient(r.conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "edge", Descriptors: descriptors, HitsAddend: hits})
}

// want sends a request and returns the answer. It fails the test unless the answer has these codes: first OK or
// OVER_LIMIT for the whole request, then one code for each descriptor.
func (r *rateLimited) want(t testing.TB, want string, hits uint32, descriptors ...*ratelimitv3.RateLimitDescriptor) *rls.RateLimitResponse {
	t.Helper()
	out, err := r.charge(t, testKey, hits, descriptors...)
	require.NoError(t, err, descriptors)
	got := out.GetOverallCode().String() + ":"
	for _, s := range out.GetStatuses() {
		got += " " + s.GetCode().String()
	}
	require.Equal(t, want, got, "%s, want %s: %v", got, want, out)
	return out
}

// fails sends a request. It fails the test unless the answer is the error with this code and this text.
func (r *rateLimited) fails(t testing.TB, key string, code codes.Code, text string, descriptors ...*ratelimitv3.RateLimitDescriptor) {
	t.Helper()
	out, err := r.charge(t, key, 1, descriptors...)
	assert.True(t, status.Code(err) == code && strings.Contains(status.Convert(err).Message(), text),
		"%v: %v, %v; want %s with %q", descriptors, out, err, code, text)
}

// put stores a limit, and waits until it applies to requests of acme.
func (r *rateLimited) put(t testing.TB, rule string, limit object) {
	t.Helper()
	r.do(t, http.StatusCreated, "PUT", "/v1/limits/"+rule, "", limit)
	testenv.Eventually(t, func() bool {
		d := envoyDescriptor("tenant=acme", "user=nobody", "path=/none", "rule="+rule)
		d.HitsAddend = wrapperspb.UInt64(0)
		_, err := r.charge(t, testKey, 0, d)
		return err == nil
	}, "limit ", rule, " is known")
}

func headersOf(out *rls.RateLimitResponse) string {
	var all []string
	for _, h := range out.GetResponseHeadersToAdd() {
		all = append(all, h.GetKey()+": "+h.GetValue())
	}
	return strings.Join(all, "\n")
}

func TestEnvoyRateLimit_Descriptors_ChargeTheirRules(t *testing.T) {
	t.Parallel()
	r := newRateLimited(t, insecure.NewCredentials())
	r.setUp(t, 1000)
	r.put(t, "per-user", object{"per": []string{"tenant", "subject"}, "kind": "fixed_window", "rate": "3/day"})
	r.put(t, "search", object{"per": []string{"tenant"}, "match": object{"route": "/search", "method": "GET"}, "kind": "fixed_window", "rate": "10/day"})

	ann, bob := envoyDescriptor("tenant=acme", "user=ann"), envoyDescriptor("tenant=acme", "subject=bob")
	for left := range 3 {
		out := r.want(t, "OK: OK", 0, ann)
		if s := out.GetStatuses()[0]; s.GetLimitRemaining() != uint32(2-left) || s.GetCurrentLimit().GetName() != "per-user" || s.GetCurrentLimit().GetRequestsPerUnit() != 3 ||
			s.GetCurrentLimit().GetUnit() != rls.RateLimitResponse_RateLimit_DAY || s.GetDurationUntilReset().AsDuration() <= 0 {
			t.Errorf("%v", s)
		}
		got := headersOf(out)
		assert.True(t, strings.HasPrefix(got, fmt.Sprintf("ratelimit: \"per-user\";r=%d;t=", 2-left)) && strings.Contains(got, "ratelimit-policy: \"per-user\";q=3;w=86400"), got)
	}
	assert.Contains(t, headersOf(r.want(t, "OVER_LIMIT: OVER_LIMIT", 0, ann)), "\nretry-after: ")
	r.want(t, "OVER_LIMIT: OK OVER_LIMIT", 0, bob, ann) // bob is charged although ann is refused
	r.want(t, "OK: OK", 2, bob)
	r.want(t, "OVER_LIMIT: OVER_LIMIT", 1, bob)
	r.want(t, "OVER_LIMIT: OVER_LIMIT", 4, envoyDescriptor("tenant=acme", "user=cleo")) // this request can never pass
	looks, takes := envoyDescriptor("tenant=acme", "user=dora"), envoyDescriptor("tenant=acme", "user=dora")
	looks.HitsAddend, takes.HitsAddend = wrapperspb.UInt64(0), wrapperspb.UInt64(3)
	for range 5 {
		r.want(t, "OK: OK", 9, looks)
	}
	r.want(t, "OK: OK", 9, takes)
	r.want(t, "OVER_LIMIT: OVER_LIMIT", 9, looks)

	// All spellings of a path are one route, as at every gateway. A request with another method, or without the
	// rule's entry, is not charged.
	for i, path := range []string{"/search", "//search?q=1", "/SEARCH/", "/search;x=1"} {
		out := r.want(t, "OK: OK", 1, envoyDescriptor("tenant=acme", "path="+path, "method=get", "user=emil", "rule=search"))
		assert.EqualValues(t, 9-i, out.GetStatuses()[0].GetLimitRemaining(), "%s: left", path)
	}
	out := r.want(t, "OK: OK", 1, envoyDescriptor("tenant=acme", "path=/search", "method=POST"))
	assert.Nil(t, out.GetStatuses()[0].GetCurrentLimit(), "no limit applies: %v", out)
	r.want(t, "OVER_LIMIT: OVER_LIMIT OK", 1, envoyDescriptor("tenant=acme", "path=/"+strings.Repeat("x", 300)), bob) // a long path must not evade the limits

	// If a descriptor has no tenant, the domain of the request is its tenant.
	r.fails(t, testKey, codes.NotFound, "edge", envoyDescriptor("user=ann"))
	r.do(t, http.StatusCreated, "PUT", "/v1/tenants/edge", "", object{"plan": "basic"})
	testenv.Eventually(t, func() bool {
		_, err := r.charge(t, testKey, 1, envoyDescriptor("user=fred"))
		return err == nil
	}, "tenant edge is known")

	// A proxy that lets requests pass on errors must get OVER_LIMIT, not an error, for blocked and suspended
	// requests.
	r.do(t, http.StatusCreated, "PUT", "/v1/blocks/ip/192.0.2.0%2F24", "", object{})
	testenv.Eventually(t, func() bool {
		out, err := r.charge(t, testKey, 1, envoyDescriptor("tenant=acme", "remote_address=192.0.2.7"))
		return err == nil && out.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT
	}, "the address is blocked")
	r.do(t, http.StatusOK, "PATCH", "/v1/tenants/acme", "", object{"status": "suspended"})
	testenv.Eventually(t, func() bool {
		out, err := r.charge(t, testKey, 1, envoyDescriptor("tenant=acme", "user=gina"))
		return err == nil && out.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT
	}, "acme is suspended")

	r.fails(t, testKey, codes.NotFound, "none-such", envoyDescriptor("tenant=edge", "rule=none-such"))
	r.fails(t, testKey, codes.InvalidArgument, `descriptors[0].entries[1].key "usr" is unknown`, envoyDescriptor("tenant=edge", "usr=ann"))
	r.fails(t, testKey, codes.InvalidArgument, "descriptors must have")
	got := r.metrics(t)
	for _, metric := range []string{
		`quotasvc_envoy_rls_requests_total{code="InvalidArgument"} 2`,
		"quotasvc_envoy_rls_in_flight_requests 0", `quotasvc_http_connections{listener="envoy_rls"} 1`,
	} {
		assert.Contains(t, got, metric)
	}
	r.logged(`"violated":"per-user"`, 2)
	r.logged(`"grpc_code":"OverLimit"`, 4)
	r.stop()
}

func TestEnvoyRateLimit_Keys_Required(t *testing.T) {
	t.Parallel()
	r := newRateLimited(t, insecure.NewCredentials())
	r.setUp(t, 1000)
	acme, other := envoyDescriptor("tenant=acme"), envoyDescriptor("tenant=other")
	bound, reader := r.newSecret(t, object{"name": "bound", "scopes": []string{"use"}, "tenant": "acme"}), r.newSecret(t, object{"name": "reader", "scopes": []string{"read"}})
	r.fails(t, "", codes.Unauthenticated, "authorization", acme)
	r.fails(t, "wrong", codes.Unauthenticated, "unknown", acme)
	r.fails(t, reader, codes.PermissionDenied, "scope use", acme)
	out, err := r.charge(t, bound, 1, acme, acme)
	assert.True(t, err == nil && out.GetOverallCode() == rls.RateLimitResponse_OK, "%v, %v", out, err)
	r.fails(t, bound, codes.PermissionDenied, "another tenant", acme, other)
	r.fails(t, bound, codes.PermissionDenied, "another tenant", envoyDescriptor("user=ann")) // the domain is another tenant
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+testKey, "authorization", "Bearer wrong")
	_, err = rls.NewRateLimitServiceClient(r.conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "edge", Descriptors: []*ratelimitv3.RateLimitDescriptor{acme}})
	assert.True(t, status.Code(err) == codes.InvalidArgument, err)
	testenv.Eventually(t, func() bool {
		_, err := r.charge(t, "wrong", 1, acme)
		return status.Code(err) == codes.ResourceExhausted
	}, "guesses are limited")
	_, err = r.charge(t, bound, 1, acme)
	assert.NoError(t, err, "a right key is locked out")
	huge := envoyDescriptor("tenant=acme", "user="+strings.Repeat("x", 70<<10))
	r.fails(t, testKey, codes.ResourceExhausted, "larger than max", huge)
	health := grpc_health_v1.NewHealthClient(r.conn)
	for service, want := range map[string]codes.Code{"": codes.OK, "envoy.service.ratelimit.v3.RateLimitService": codes.OK, "other": codes.NotFound} {
		got, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		assert.True(t, status.Code(err) == want && (err != nil || got.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING), "health of %q: %v, %v", service, got, err)
	}
}

func TestEnvoyRateLimit_TLS_CertificateOfTheAPI(t *testing.T) {
	t.Parallel()
	authority, dir := testenv.NewAuthority(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority.Issue(t, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	with := func(certificates ...tls.Certificate) credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{RootCAs: authority.Pool, Certificates: certificates, MinVersion: tls.VersionTLS12})
	}
	r := newRateLimited(t, with(pair), "QUOTASVC_TLS_CERT_FILE="+cert, "QUOTASVC_TLS_KEY_FILE="+key, "QUOTASVC_TLS_CLIENT_CA_FILE="+authority.File)
	r.fails(t, testKey, codes.NotFound, "acme", envoyDescriptor("tenant=acme"))
	for name, stranger := range map[string]credentials.TransportCredentials{"plain": insecure.NewCredentials(), "no certificate": with()} {
		r.conn = r.dial(t, stranger)
		_, err = r.charge(t, testKey, 1, envoyDescriptor("tenant=acme"))
		assert.True(t, status.Code(err) == codes.Unavailable, "%s: %v", name, err)
	}
}

// In a flood, refused requests use no tokens of other requests. Exactly as many requests pass as the limit allows.
func TestEnvoyRateLimit_Flood_LimitIsExact(t *testing.T) {
	t.Parallel()
	const clients, each, limit = 32, 100, 500
	r := newRateLimited(t, insecure.NewCredentials(), "QUOTASVC_LOG_LEVEL=warn")
	r.setUp(t, 1000)
	r.put(t, "per-tenant", object{"per": []string{"tenant"}, "kind": "fixed_window", "rate": fmt.Sprintf("%d/day", limit)})
	var all sync.WaitGroup
	var passed, refused, failed atomic.Int64
	for range clients {
		conn := r.dial(t, insecure.NewCredentials())
		all.Go(func() {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+testKey)
			for range each {
				d := envoyDescriptor("tenant=acme", fmt.Sprintf("user=u%d", rand.IntN(10)))
				switch out, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "edge", Descriptors: []*ratelimitv3.RateLimitDescriptor{d}}); {
				case err != nil:
					failed.Add(1)
				case out.GetOverallCode() == rls.RateLimitResponse_OK:
					passed.Add(1)
				default:
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	// If Redis is slow for a moment, the instance decides some requests without it. The limit only applies exactly to
	// the requests that Redis has decided.
	local := max(0, metricOf(r.metrics(t), `quotasvc_limit_decisions_total{kind="fixed_window",mode="local",outcome="allow",rule="per-tenant"}`))
	exact := passed.Load() == limit || local > 0 && float64(passed.Load())-local <= limit
	assert.True(t, exact && failed.Load() == 0 && passed.Load()+refused.Load() == clients*each,
		"%d passed, %d refused, %d failed of %d; want %d to pass", passed.Load(), refused.Load(), failed.Load(), clients*each, limit)
}

// Envoy proxies keep their connections, and continue to send requests, while an instance stops.
func TestEnvoyRateLimit_StopUnderLoad_LosesNoAnswer(t *testing.T) {
	t.Parallel()
	const clients = 8
	r := newRateLimited(t, insecure.NewCredentials(), "QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_DRAIN_DELAY=1s", "QUOTASVC_STOP_TIMEOUT=10m")
	r.setUp(t, 1000)
	r.put(t, "per-tenant", object{"per": []string{"tenant"}, "kind": "fixed_window", "rate": "1000000/day"})
	var all sync.WaitGroup
	var answered atomic.Int64
	for range clients {
		conn := r.dial(t, insecure.NewCredentials())
		all.Go(func() {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+testKey)
			for {
				_, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "edge", Descriptors: []*ratelimitv3.RateLimitDescriptor{envoyDescriptor("tenant=acme")}})
				if err == nil {
					answered.Add(1)
					continue
				}
				// The server closed the connection, and its port accepts no new connection. So this request was not
				// sent.
				assert.True(t, status.Code(err) == codes.Unavailable && strings.Contains(status.Convert(err).Message(), "connection refused"),
					"an answer is lost: %v", err)
				return
			}
		})
	}
	testenv.Eventually(t, func() bool { return answered.Load() > 500 }, "there is load")
	begun := answered.Load()
	r.signal(syscall.SIGTERM)
	health := grpc_health_v1.NewHealthClient(r.conn)
	testenv.Eventually(t, func() bool {
		got, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		return err == nil && got.GetStatus() == grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}, "health says that the end is near")
	all.Wait()
	assert.Zero(t, r.wait(), "ended with")
	assert.GreaterOrEqual(t, answered.Load()-begun, int64(clients), "answers after the signal")
}

func TestEnvoyRateLimit_Address_CheckedAtStart(t *testing.T) {
	t.Parallel()
	r := newRateLimited(t, insecure.NewCredentials(), "QUOTASVC_LOG_LEVEL=warn")
	free := freeAddress(t)
	for address, want := range map[string]string{
		"nowhere": `"nowhere" is not host:port`,
		free:      "is the address of another listener: " + free,
		r.address: r.address + " is in use by another program",
	} {
		status, _, log := tool(t, append(backends(t), "QUOTASVC_ENVOY_RLS_LISTEN="+address), "serve", "--listen", free, "--ops-listen", "127.0.0.1:0")
		assert.True(t, status != 0 && strings.Contains(log, want) && strings.Contains(log, "QUOTASVC_ENVOY_RLS_LISTEN"),
			"%s: %d\n%s", address, status, log)
	}
}
