package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// node is a part of Envoy's configuration.
type node struct{ value any }

// at returns the node under keys. If one of the keys is missing, it returns an empty node.
func (n node) at(keys ...string) node {
	for _, key := range keys {
		object, _ := n.value.(map[string]any)
		n = node{object[key]}
	}
	return n
}

func (n node) list() []node {
	values, _ := n.value.([]any)
	var out []node
	for _, v := range values {
		out = append(out, node{v})
	}
	return out
}

func (n node) text() string {
	if n.value == nil {
		return ""
	}
	return fmt.Sprint(n.value)
}

// kind returns the name of a typed configuration's type, without its package.
func (n node) kind() string {
	url := n.at("@type").text()
	return url[strings.LastIndexByte(url, '.')+1:]
}

// envoyStandIn runs the filters of deploy/envoy/envoy.yaml, except LocalRateLimit. Each filter does what Envoy's
// documentation says. The stand-in refuses other filters. It is not Envoy: its tests show that the file and the
// service agree with the documentation.
type envoyStandIn struct {
	t        testing.TB
	manager  node
	clusters map[string]string // name to host:port
}

// envoy starts the stand-in with deploy/envoy in front of m. change lists texts of the configuration, each followed
// by its replacement.
func (m *metered) envoy(t testing.TB, key string, change ...string) *gateway {
	t.Helper()
	_, apiPort, _ := net.SplitHostPort(strings.TrimPrefix(m.api, "http://"))
	_, appPort, _ := net.SplitHostPort(strings.TrimPrefix(m.app.URL, "http://"))
	dir := configured(t, "envoy", key,
		append(change, "port_value: 8080", "port_value: "+apiPort, "port_value: 3000", "port_value: "+appPort))
	raw := testenv.Must(t).Get(os.ReadFile(filepath.Join(dir, "envoy.yaml")))
	var file map[string]any
	require.NoError(t, yaml.UnmarshalWithOptions(raw, &file, yaml.Strict()))
	e := &envoyStandIn{t: t, clusters: map[string]string{}}
	resources := node{file}.at("static_resources")
	for _, cluster := range resources.at("clusters").list() {
		address := cluster.at("load_assignment", "endpoints").list()[0].at("lb_endpoints").list()[0].at("endpoint", "address", "socket_address")
		e.clusters[cluster.at("name").text()] = net.JoinHostPort(address.at("address").text(), address.at("port_value").text())
	}
	e.manager = resources.at("listeners").list()[0].at("filter_chains").list()[0].at("filters").list()[0].at("typed_config")
	require.Equal(t, "HttpConnectionManager", e.manager.kind(), "the listener's filter is a")
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return &gateway{t: t, url: server.URL}
}

// ServeHTTP does the work of Envoy's connection manager. It applies early mutations of headers, normalizes the path,
// sets the addresses, and runs the filters in order.
func (e *envoyStandIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, extension := range e.manager.at("early_header_mutation_extensions").list() {
		for _, mutation := range extension.at("typed_config", "mutations").list() {
			prefix, name := mutation.at("remove_on_match", "key_matcher", "prefix").text(), mutation.at("remove").text()
			if prefix == "" && name == "" {
				panic("an early mutation that the stand-in does not know")
			}
			r.Header.Del(name)
			for name := range r.Header {
				if prefix != "" && strings.HasPrefix(strings.ToLower(name), prefix) {
					r.Header.Del(name)
				}
			}
		}
	}
	if e.manager.at("normalize_path").text() == "true" && e.manager.at("merge_slashes").text() == "true" {
		r.URL.Path, r.URL.RawPath = path.Clean(r.URL.Path), ""
	}
	if e.manager.at("use_remote_address").text() == "true" {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		hops := append(r.Header.Values("X-Forwarded-For"), host)
		r.Header.Set("X-Forwarded-For", strings.Join(hops, ","))
		if r.Header.Get("X-Request-Id") == "" { // Envoy keeps the id of a client in a private network
			r.Header.Set("X-Request-Id", fmt.Sprintf("envoy-%d", time.Now().UnixNano()))
		}
	}
	host, route := e.route(r)
	for _, filter := range e.manager.at("http_filters").list() {
		config := filter.at("typed_config")
		if route.at("typed_per_filter_config", filter.at("name").text(), "disabled").text() == "true" {
			continue
		}
		switch config.kind() {
		case "LocalRateLimit": // Envoy's own limiter is not part of the stand-in
		case "ApiKeyAuth":
			if !apiKeyAuth(config, r) {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
		case "HeaderMutation":
			mutate(config.at("mutations"), r)
			mutate(route.at("typed_per_filter_config", filter.at("name").text(), "mutations"), r)
		case "ExtAuthz":
			if !e.extAuthz(config, w, r) {
				return
			}
		case "Router":
			for _, name := range host.at("request_headers_to_remove").list() {
				r.Header.Del(name.text())
			}
			target := &url.URL{Scheme: "http", Host: e.clusters[route.at("route", "cluster").text()]}
			httputil.NewSingleHostReverseProxy(target).ServeHTTP(w, r)
		default:
			panic("a filter that the stand-in does not know: " + config.kind())
		}
	}
}

// route returns the first route that matches the request, and its virtual host.
func (e *envoyStandIn) route(r *http.Request) (host, route node) {
	host = e.manager.at("route_config", "virtual_hosts").list()[0]
	for _, route := range host.at("routes").list() {
		prefix := route.at("match", "prefix").text()
		if prefix != "" && strings.HasPrefix(r.URL.Path, prefix) && matchesHeaders(route.at("match", "headers").list(), r) {
			return host, route
		}
	}
	panic("no route for " + r.URL.Path)
}

// matchesHeaders reports whether a request has all these headers of a route's match.
func matchesHeaders(headers []node, r *http.Request) bool {
	for _, header := range headers {
		value := r.Header.Get(header.at("name").text())
		if header.at("name").text() == ":method" {
			value = r.Method
		}
		match := header.at("string_match")
		exact, regex := match.at("exact").text(), match.at("safe_regex", "regex").text()
		if exact != "" && value != exact || regex != "" && !regexp.MustCompile("^(?:"+regex+")$").MatchString(value) {
			return false
		}
	}
	return true
}

func apiKeyAuth(config node, r *http.Request) bool {
	key := r.Header.Get(config.at("key_sources").list()[0].at("header").text())
	for _, credential := range config.at("credentials").list() {
		if credential.at("key").text() == key {
			r.Header.Set(config.at("forwarding", "header").text(), credential.at("client").text())
			return true
		}
	}
	return false
}

func mutate(mutations node, r *http.Request) {
	for _, mutation := range mutations.at("request_mutations").list() {
		if mutation.at("append", "append_action").text() != "OVERWRITE_IF_EXISTS_OR_ADD" {
			panic("a mutation that the stand-in does not know")
		}
		r.Header.Set(mutation.at("append", "header", "key").text(), mutation.at("append", "header", "value").text())
	}
}

// extAuthz asks the service whether a request may pass. It sends the client's method, path and Authorization, the
// allowed headers, and the headers to add. If the answer is 200, the request passes. An answer 5xx, or no answer, is
// an error. Any other answer is returned to the client unchanged.
func (e *envoyStandIn) extAuthz(config node, w http.ResponseWriter, r *http.Request) bool {
	service := config.at("http_service")
	timeout, err := time.ParseDuration(service.at("server_uri", "timeout").text())
	if err != nil {
		panic(err)
	}
	address := "http://" + e.clusters[service.at("server_uri", "cluster").text()] + service.at("path_prefix").text() + r.URL.RequestURI()
	ask, err := http.NewRequestWithContext(r.Context(), r.Method, address, nil)
	if err != nil {
		panic(err)
	}
	ask.Host = r.Host
	for name, values := range r.Header {
		if name == "Authorization" || matches(config.at("allowed_headers"), name) {
			ask.Header[name] = values
		}
	}
	for _, header := range service.at("authorization_request", "headers_to_add").list() {
		ask.Header.Set(header.at("key").text(), header.at("value").text())
	}
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(ask)
	if err == nil {
		defer answer.Body.Close()
	}
	if err != nil || answer.StatusCode >= 500 {
		if config.at("failure_mode_allow").text() == "true" {
			return true
		}
		if code := config.at("status_on_error", "code").text(); code != "ServiceUnavailable" {
			panic("a status that the stand-in does not know: " + code)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return false
	}
	response := service.at("authorization_response")
	if answer.StatusCode == http.StatusOK {
		for name, values := range answer.Header {
			if matches(response.at("allowed_upstream_headers"), name) {
				r.Header[name] = values
			}
			if matches(response.at("allowed_client_headers_on_success"), name) {
				w.Header()[name] = append(w.Header()[name], values...)
			}
		}
		return true
	}
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
	return false
}

// matches reports whether a header's name matches one of a list of patterns.
func matches(list node, name string) bool {
	name = strings.ToLower(name)
	for _, pattern := range list.at("patterns").list() {
		exact, prefix := pattern.at("exact").text(), pattern.at("prefix").text()
		if exact == name || prefix != "" && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func TestEnvoy_ModeLimit_ApplicationCanRefund(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.chargesLimitsOnly(t, m.envoy(t, m.key, "\n                          headers_to_add:\n", "\n                          headers_to_add:\n                            - {key: x-quota-mode, value: limit}\n"))
}

func TestEnvoy_ClientHeaders_NotTrusted(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.isNotFooled(t, m.envoy(t, m.key))
}

func TestEnvoy_NoDecision_ClosesOrOpensAsConfigured(t *testing.T) {
	t.Parallel()
	postgres := testenv.PostgresPrivate(t)
	m := newMetered(t, "QUOTASVC_DATABASE_URL="+testenv.AsService(postgres.URL))
	closed, open := m.envoy(t, m.key), m.envoy(t, m.key, "failure_mode_allow: false", "failure_mode_allow: true")
	closed.get("127.0.0.1", "/search").passed(t)
	undecided := func(what string) {
		got := closed.get("127.0.0.1", "/search")
		assert.True(t, got.status == 503 && got.header.Get("X-App") == "", "%s: %s", what, got)
		open.get("127.0.0.1", "/search").passed(t)
	}
	postgres.Stop()
	undecided("PostgreSQL down")
	m.stop()
	undecided("quotasvc down")
	seen, _ := m.app.last()
	assert.Empty(t, seen.Header.Get("X-Quota-Operation"), "the application gets operation")
}

func TestEnvoy_WrongKey_OpensNothing(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	g := m.envoy(t, m.key+"x", "failure_mode_allow: false", "failure_mode_allow: true")
	got := g.get("127.0.0.1", "/search")
	assert.True(t, got.status == 401 && got.header.Get("X-App") == "", "got %s", got)
}
