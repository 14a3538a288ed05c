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

// rateLimitExample reads deploy/envoy/ratelimit.yaml with Envoy's own definitions. Unknown fields and values out of
// bounds are errors.
func rateLimitExample(t *testing.T) *managerv3.HttpConnectionManager {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "deploy", "envoy", "ratelimit.yaml"))
	require.NoError(t, err)
	text, err := yaml.YAMLToJSON(raw)
	require.NoError(t, err)
	var bootstrap bootstrapv3.Bootstrap
	require.NoError(t, protojson.Unmarshal(text, &bootstrap))
	require.NoError(t, bootstrap.ValidateAll())
	var manager managerv3.HttpConnectionManager
	require.NoError(t, bootstrap.GetStaticResources().GetListeners()[0].GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(&manager))
	require.NoError(t, manager.ValidateAll())
	return &manager
}

// exampleDescriptor returns the descriptor that Envoy would send for a rate limit and a request of acme.
func exampleDescriptor(t *testing.T, limit *routev3.RateLimit, path string) *ratelimitv3.RateLimitDescriptor {
	t.Helper()
	request := map[string]string{"x-quota-tenant": "acme", ":path": path, ":method": "GET"}
	d := &ratelimitv3.RateLimitDescriptor{}
	if own := limit.GetHitsAddend(); own != nil {
		d.HitsAddend = wrapperspb.UInt64(own.GetNumber().GetValue())
	}
	for _, a := range limit.GetActions() {
		entry := &ratelimitv3.RateLimitDescriptor_Entry{Key: "remote_address", Value: "192.0.2.1"}
		if h := a.GetRequestHeaders(); h != nil {
			entry.Key, entry.Value = h.GetDescriptorKey(), request[h.GetHeaderName()]
		} else if a.GetRemoteAddress() == nil {
			t.Fatalf("an action that the test does not know: %v", a)
		}
		d.Entries = append(d.Entries, entry)
	}
	return d
}

func TestEnvoyRateLimit_Example_FitsEnvoyAndService(t *testing.T) {
	t.Parallel()
	manager := rateLimitExample(t)
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
	key := r.newSecret(t, object{"name": "gateway", "scopes": []string{"use"}})
	routes := manager.GetRouteConfig().GetVirtualHosts()[0].GetRoutes()
	left := map[string]uint32{"/export": 2, "/": 1} // five hits, then one
	for _, route := range routes {
		prefix := route.GetMatch().GetPrefix()
		out, err := r.charge(t, key, 0, exampleDescriptor(t, route.GetRoute().GetRateLimits()[0], prefix+"?q=1"))
		assert.True(t, err == nil && out.GetOverallCode() == rls.RateLimitResponse_OK &&
			out.GetStatuses()[0].GetLimitRemaining() == left[prefix], "%s: %v, %v", prefix, out, err)
	}
	assert.Len(t, routes, len(left), "routes")
}
