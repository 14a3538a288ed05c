package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/api_key_auth/v3" // a type that the file names, as those below
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	managerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// envoyExample reads a file of deploy/envoy with Envoy's own definitions. Unknown fields and values out of bounds are
// errors.
func envoyExample(t *testing.T, name string) *managerv3.HttpConnectionManager {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "envoy", name))
	require.NoError(t, err)
	text, err := yaml.YAMLToJSON(raw)
	require.NoError(t, err)
	var bootstrap bootstrapv3.Bootstrap
	require.NoError(t, protojson.Unmarshal(text, &bootstrap))
	require.NoError(t, bootstrap.ValidateAll())
	var manager managerv3.HttpConnectionManager
	require.NoError(t, bootstrap.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(&manager))
	require.NoError(t, manager.ValidateAll())
	for _, f := range manager.GetHttpFilters() {
		settings, err := f.GetTypedConfig().UnmarshalNew()
		require.NoError(t, err, f.GetName())
		if valid, ok := settings.(interface{ ValidateAll() error }); assert.True(t, ok, f.GetName()) {
			assert.NoError(t, valid.ValidateAll(), f.GetName())
		}
	}
	return &manager
}

// The stand-in for Envoy does not know all fields that Envoy has, so it does not notice a misspelt one.
func TestEnvoy_Example_FitsEnvoysDefinitions(t *testing.T) {
	t.Parallel()
	assert.NotEmpty(t, envoyExample(t, "envoy.yaml").GetHttpFilters())
}

// rateLimitsOf returns the rate limits of a route. Envoy reads hits_addend only in the settings of the filter for the
// route, so the test fails if the route itself has it.
func rateLimitsOf(t *testing.T, route *routev3.Route) []*routev3.RateLimit {
	t.Helper()
	if own := route.GetTypedPerFilterConfig()["envoy.filters.http.ratelimit"]; own != nil {
		var settings filterv3.RateLimitPerRoute
		require.NoError(t, own.UnmarshalTo(&settings))
		require.NoError(t, settings.ValidateAll())
		return settings.GetRateLimits()
	}
	for _, limit := range route.GetRoute().GetRateLimits() {
		require.Nil(t, limit.GetHitsAddend(), route)
	}
	return route.GetRoute().GetRateLimits()
}

// exampleDescriptors returns the descriptors that Envoy would send for a request of acme: those before the request, or
// those at the end of a stream that took a number of tokens.
func exampleDescriptors(t *testing.T, route *routev3.Route, atEnd bool, tokens uint64) (out []*ratelimitv3.RateLimitDescriptor) {
	t.Helper()
	request := map[string]string{"x-quota-tenant": "acme", ":path": route.GetMatch().GetPrefix() + "?q=1", ":method": "GET"}
	if atEnd {
		delete(request, "x-quota-tenant") // Envoy has removed it for the application
	}
	for _, limit := range rateLimitsOf(t, route) {
		if limit.GetApplyOnStreamDone() != atEnd {
			continue
		}
		d := &ratelimitv3.RateLimitDescriptor{}
		if own := limit.GetHitsAddend(); own.GetFormat() == "%DYNAMIC_METADATA(quotasvc:tokens)%" {
			d.HitsAddend = wrapperspb.UInt64(tokens)
		} else if own != nil {
			d.HitsAddend = wrapperspb.UInt64(own.GetNumber().GetValue())
		}
		for _, a := range limit.GetActions() {
			entry := &ratelimitv3.RateLimitDescriptor_Entry{Key: "remote_address", Value: "192.0.2.1"}
			if h := a.GetRequestHeaders(); h != nil {
				entry.Key, entry.Value = h.GetDescriptorKey(), request[h.GetHeaderName()]
			} else if g := a.GetGenericKey(); g != nil {
				entry.Key, entry.Value = g.GetDescriptorKey(), g.GetDescriptorValue()
			} else if m := a.GetMetadata(); m.GetMetadataKey().GetKey() == "quotasvc" && m.GetMetadataKey().GetPath()[0].GetKey() == "tenant" {
				entry.Key, entry.Value = m.GetDescriptorKey(), "acme"
			} else if a.GetRemoteAddress() == nil {
				t.Fatalf("an action that the test does not know: %v", a)
			}
			d.Entries = append(d.Entries, entry)
		}
		out = append(out, d)
	}
	return out
}

func TestEnvoyRateLimit_Example_FitsEnvoyAndService(t *testing.T) {
	t.Parallel()
	manager := envoyExample(t, "ratelimit.yaml")
	var filter filterv3.RateLimit
	for _, f := range manager.GetHttpFilters() {
		if f.GetTypedConfig().MessageIs(&filter) {
			require.NoError(t, f.GetTypedConfig().UnmarshalTo(&filter))
		}
	}
	require.NoError(t, filter.ValidateAll())
	metadata := filter.GetRateLimitService().GetGrpcService().GetInitialMetadata()
	assert.True(t, filter.GetFailureModeDeny() && len(metadata) == 1 && metadata[0].GetKey() == "authorization" &&
		strings.HasPrefix(metadata[0].GetValue(), "Bearer "), &filter)

	r := newRateLimited(t, insecure.NewCredentials())
	r.setUp(t, 1000)
	r.put(t, "per-address", object{"per": []string{"ip"}, "rate": "7/day", "kind": "fixed_window"})
	r.put(t, "model-tokens", object{"per": []string{"tenant"}, "rate": "1000/day", "kind": "fixed_window", "debt": 5000, "match": object{"route": "/chat"}})
	key := r.newSecret(t, object{"name": "gateway", "scopes": []string{"use"}})
	routes := manager.GetRouteConfig().GetVirtualHosts()[0].GetRoutes()
	left := map[string]uint32{"/export": 2, "/chat": 1000, "/": 1} // five hits, a look, one hit
	for _, route := range routes {
		prefix := route.GetMatch().GetPrefix()
		out, err := r.charge(t, key, 0, exampleDescriptors(t, route, false, 0)...)
		assert.True(t, err == nil && out.GetOverallCode() == rls.RateLimitResponse_OK && len(out.GetStatuses()) == 1 &&
			out.GetStatuses()[0].GetLimitRemaining() == left[prefix], "%s: %v, %v", prefix, out, err)
		reports := exampleDescriptors(t, route, true, 1200)
		if assert.Equal(t, prefix == "/chat", len(reports) == 1, "%s: %v", prefix, reports); len(reports) > 0 {
			out, err = r.charge(t, key, 0, reports...)
			assert.True(t, err == nil && out.GetOverallCode() == rls.RateLimitResponse_OK, "%s: %v, %v", prefix, out, err)
			assert.Equal(t, limitState{Owed: 200}, r.state(t, "model-tokens"))
		}
	}
	assert.Len(t, routes, len(left), "routes")
}
