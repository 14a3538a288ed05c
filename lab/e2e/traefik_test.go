package e2e

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// The stand-in for Traefik supports only the settings that deploy/traefik/dynamic.yml uses, and refuses others. It does
// what Traefik's documentation says. It is not Traefik: it shows that the file and the service agree with the
// documentation.

type traefikFile struct {
	HTTP struct {
		Routers     map[string]traefikRouter     `yaml:"routers"`
		Middlewares map[string]traefikMiddleware `yaml:"middlewares"`
		Services    map[string]traefikService    `yaml:"services"`
	} `yaml:"http"`
}

// traefikPreflight is the only rule without a prefix that the stand-in knows.
const traefikPreflight = "Method(`OPTIONS`) && HeaderRegexp(`Origin`, `.`) && HeaderRegexp(`Access-Control-Request-Method`, `.`)"

type traefikRouter struct {
	Rule        string   `yaml:"rule"`
	Middlewares []string `yaml:"middlewares"`
	Service     string   `yaml:"service"`
}

type traefikMiddleware struct {
	Chain *struct {
		Middlewares []string `yaml:"middlewares"`
	} `yaml:"chain"`
	Headers *struct {
		CustomRequestHeaders map[string]string `yaml:"customRequestHeaders"`
	} `yaml:"headers"`
	ForwardAuth *traefikForwardAuth `yaml:"forwardAuth"`

	// Traefik's own limiter is not part of the stand-in.
	RateLimit *struct {
		Average int `yaml:"average"`
		Burst   int `yaml:"burst"`
	} `yaml:"rateLimit"`
	InFlightReq *struct {
		Amount          int `yaml:"amount"`
		SourceCriterion struct {
			IPStrategy struct {
				Depth int `yaml:"depth"`
			} `yaml:"ipStrategy"`
		} `yaml:"sourceCriterion"`
	} `yaml:"inFlightReq"`
}

type traefikForwardAuth struct {
	Address             string   `yaml:"address"`
	TrustForwardHeader  bool     `yaml:"trustForwardHeader"`
	AuthRequestHeaders  []string `yaml:"authRequestHeaders"`
	AuthResponseHeaders []string `yaml:"authResponseHeaders"`
}

type traefikService struct {
	LoadBalancer struct {
		Servers []struct {
			URL string `yaml:"url"`
		} `yaml:"servers"`
	} `yaml:"loadBalancer"`
}

// traefik starts the stand-in with deploy/traefik and this key in front of m. change lists texts of the
// configuration, each followed by its replacement.
func (m *metered) traefik(t testing.TB, key string, change ...string) *gateway {
	t.Helper()
	// This is a service of the application that maps API keys to tenants.
	accounts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "the-key-of-acme" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Quota-Tenant", "acme")
	}))
	t.Cleanup(accounts.Close)
	dir := configured(t, "traefik", key, append(change,
		"http://127.0.0.1:8080", m.api, "http://127.0.0.1:3000", m.app.URL, "http://127.0.0.1:3001", accounts.URL))
	raw := testenv.Must(t).Get(os.ReadFile(filepath.Join(dir, "dynamic.yml")))
	var file traefikFile
	require.NoError(t, yaml.UnmarshalWithOptions(raw, &file, yaml.Strict()))
	server := httptest.NewServer(file.handler(t))
	t.Cleanup(server.Close)
	return &gateway{t: t, url: server.URL, quiet: true}
}

// handler returns the handler of the entry point. The handler drops the forwarding headers of a client that is not
// trusted. Then it chooses the router with the longest rule that matches.
func (f *traefikFile) handler(t testing.TB) http.Handler {
	t.Helper()
	rules := map[string]http.Handler{}
	var preflight http.Handler
	for name, router := range f.HTTP.Routers {
		if router.Rule == traefikPreflight {
			preflight = f.wrap(t, router.Middlewares, f.service(t, router.Service))
			continue
		}
		prefix, ok := strings.CutPrefix(router.Rule, "PathPrefix(`")
		prefix, closed := strings.CutSuffix(prefix, "`)")
		require.True(t, ok && closed, "router %s has a rule that the stand-in does not know: %s", name, router.Rule)
		rules[prefix] = f.wrap(t, router.Middlewares, f.service(t, router.Service))
	}
	prefixes := slices.SortedFunc(maps.Keys(rules), func(a, b string) int { return len(b) - len(a) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Forwarded-") || name == "X-Real-Ip" {
				r.Header.Del(name)
			}
		}
		r.URL.Path, r.URL.RawPath = path.Clean(r.URL.Path), ""
		origin, method := r.Header.Get("Origin"), r.Header.Get("Access-Control-Request-Method")
		if preflight != nil && r.Method == http.MethodOptions && origin != "" && method != "" {
			preflight.ServeHTTP(w, r)
			return
		}
		for _, prefix := range prefixes {
			if strings.HasPrefix(r.URL.Path, prefix) {
				rules[prefix].ServeHTTP(w, r)
				return
			}
		}
		http.NotFound(w, r)
	})
}

func (f *traefikFile) service(t testing.TB, name string) http.Handler {
	t.Helper()
	servers := f.HTTP.Services[name].LoadBalancer.Servers
	require.Len(t, servers, 1, "service %q has %d servers", name, len(servers))
	return httputil.NewSingleHostReverseProxy(urlOf(t, servers[0].URL))
}

// wrap returns a handler that runs the middlewares and then the handler `next`. The first middleware is the
// outermost.
func (f *traefikFile) wrap(t testing.TB, names []string, next http.Handler) http.Handler {
	t.Helper()
	for _, name := range slices.Backward(names) {
		m, ok := f.HTTP.Middlewares[name]
		inner := next
		switch {
		case !ok:
			t.Fatalf("there is no middleware %q", name)
		case m.Chain != nil:
			next = f.wrap(t, m.Chain.Middlewares, inner)
		case m.ForwardAuth != nil:
			next = m.ForwardAuth.handler(inner)
		case m.Headers != nil:
			next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for header, value := range m.Headers.CustomRequestHeaders {
					if r.Header.Del(header); value != "" {
						r.Header.Set(header, value)
					}
				}
				inner.ServeHTTP(w, r)
			})
		case m.RateLimit != nil, m.InFlightReq != nil:
		default:
			t.Fatalf("middleware %q does nothing", name)
		}
	}
	return next
}

// handler returns the handler of forwardAuth. It sends a GET to the service, with all headers of the client or with
// the listed headers, and with facts about the request. If the answer is 2xx, the request passes. Any other answer is
// returned to the client. If there is no answer, the client gets a 500.
func (f *traefikForwardAuth) handler(next http.Handler) http.Handler {
	client := &http.Client{
		Timeout:       30 * time.Second,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, f.Address, nil)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		ask.Header = r.Header.Clone()
		dropHops(ask.Header)
		if len(f.AuthRequestHeaders) > 0 {
			listed := http.Header{}
			for _, name := range f.AuthRequestHeaders {
				if values := ask.Header.Values(name); len(values) > 0 {
					listed[http.CanonicalHeaderKey(name)] = values
				}
			}
			ask.Header = listed
		}
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		for name, value := range map[string]string{
			"X-Forwarded-For": host, "X-Forwarded-Method": r.Method, "X-Forwarded-Uri": r.URL.RequestURI(), "X-Forwarded-Host": r.Host, "X-Forwarded-Proto": "http",
		} {
			ask.Header.Set(name, value)
		}
		answer, err := client.Do(ask)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		defer answer.Body.Close()
		if answer.StatusCode < 200 || answer.StatusCode > 299 {
			maps.Copy(w.Header(), answer.Header)
			dropHops(w.Header())
			w.WriteHeader(answer.StatusCode)
			_, _ = io.Copy(w, answer.Body)
			return
		}
		for _, name := range f.AuthResponseHeaders {
			r.Header.Del(name)
			if values := answer.Header.Values(name); len(values) > 0 {
				r.Header[http.CanonicalHeaderKey(name)] = values
			}
		}
		next.ServeHTTP(w, r)
	})
}

func dropHops(h http.Header) {
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
}

func TestTraefik_ModeLimit_ApplicationCanRefund(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.chargesLimitsOnly(t, m.traefik(t, m.key, "X-Quota-Route: /search\n", "X-Quota-Route: /search\n          X-Quota-Mode: limit\n"))
}

func TestTraefik_ClientHeaders_NotTrusted(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.isNotFooled(t, m.traefik(t, m.key))
}

func TestTraefik_NoDecision_NothingPasses(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	m := newMetered(t, "QUOTASVC_DATABASE_URL="+testenv.AsService(postgres.URL))
	g := m.traefik(t, m.key)
	g.get("127.0.0.1", "/search").passed(t)
	postgres.Stop()
	g.get("127.0.0.1", "/search").denied(t, 503, "unavailable")
	m.stop()
	got := g.get("127.0.0.1", "/search")
	assert.True(t, got.status == 500 && got.header.Get("X-App") == "", "without quotasvc: %s", got)
}

func TestTraefik_WrongKey_OpensNothing(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	got := m.traefik(t, m.key+"x").get("127.0.0.1", "/search")
	assert.True(t, got.status == 401 && got.header.Get("X-App") == "", "got %s", got)
}
