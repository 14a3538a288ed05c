package envoyrls

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// descriptor returns a descriptor with entries, each written as key=value.
func descriptor(entries ...string) *ratelimitv3.RateLimitDescriptor {
	d := &ratelimitv3.RateLimitDescriptor{}
	for _, e := range entries {
		key, value, _ := strings.Cut(e, "=")
		d.Entries = append(d.Entries, &ratelimitv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

func ask(descriptors ...*ratelimitv3.RateLimitDescriptor) *rls.RateLimitRequest {
	return &rls.RateLimitRequest{Domain: "edge", Descriptors: descriptors}
}

func TestRequest_Entries_NameTheCharge(t *testing.T) {
	t.Parallel()
	got, err := readRequest(ask(
		descriptor("tenant=acme", "user=ann", "path=/a//b?x=1", "method=post", "remote_address=::ffff:192.0.2.1", "rule=two", "rule=one"),
		descriptor("subject=bob", "route=/v1/a", "ip=2001:db8::1"),
	))
	require.NoError(t, err)
	first, second := got[0], got[1]
	if first.Tenant != "acme" || first.Subject != "ann" || first.Route != "/a/b" || first.Method != http.MethodPost || first.IP != netip.MustParseAddr("192.0.2.1") ||
		fmt.Sprint(first.Rules) != "[one two]" || first.Cost != 1 || first.DryRun || first.Forwarded == "" {
		t.Errorf("%+v", first)
	}
	assert.True(t, second.Tenant == "edge" && second.Subject == "bob" && second.Route == "/v1/a" && second.IP == netip.MustParseAddr("2001:db8::1") &&
		second.Rules == nil, second)
}

func TestRequest_HitsAddend_OwnOfDescriptorFirst(t *testing.T) {
	t.Parallel()
	own := func(n uint64) *wrapperspb.UInt64Value { return wrapperspb.UInt64(n) }
	for _, c := range []struct {
		request uint32
		own     *wrapperspb.UInt64Value
		cost    int64
		looks   bool
	}{{0, nil, 1, false}, {1, nil, 1, false}, {7, nil, 7, false}, {7, own(3), 3, false}, {7, own(0), 1, true}, {0, own(bound.MaxAmount), bound.MaxAmount, false}, {math.MaxUint32, nil, math.MaxUint32, false}} {
		d := descriptor("tenant=acme")
		d.HitsAddend = c.own
		req := ask(d)
		req.HitsAddend = c.request
		got, err := readRequest(req)
		assert.True(t, err == nil && got[0].Cost == c.cost && got[0].DryRun == c.looks,
			"%d and %v: %+v, %v", c.request, c.own, got, err)
	}
}

func TestRequest_Rubbish_NamesTheField(t *testing.T) {
	t.Parallel()
	with := func(change func(*ratelimitv3.RateLimitDescriptor)) *rls.RateLimitRequest {
		d := descriptor("tenant=acme")
		change(d)
		return ask(descriptor("tenant=acme"), d)
	}
	many := func(n int, entry string) (list []string) {
		for range n {
			list = append(list, entry)
		}
		return list
	}
	enough := make([]*ratelimitv3.RateLimitDescriptor, descriptorsMax)
	for i := range enough {
		enough[i] = descriptor("tenant=acme")
	}
	_, err := readRequest(ask(enough...))
	assert.NoError(t, err)
	for field, req := range map[string]*rls.RateLimitRequest{
		"domain is required":                    {Descriptors: enough[:1]},
		"descriptors must have 1 to 16":         ask(),
		"descriptors must have 1 to 16 element": ask(slices.Concat(enough, enough[:1])...),
		"descriptors[0].entries must":           ask(nil),
		"descriptors[0].entries[0].key":         ask(&ratelimitv3.RateLimitDescriptor{Entries: []*ratelimitv3.RateLimitDescriptor_Entry{nil}}),
		"descriptors[0].entries has no tenant": {
			Domain: "an edge", Descriptors: []*ratelimitv3.RateLimitDescriptor{descriptor("user=ann")},
		},
		`descriptors[0].entries[1].key "usr" is unknown`:         ask(descriptor("tenant=acme", "usr=ann")),
		`descriptors[0].entries[0].key "generic_key"`:            ask(descriptor("generic_key=acme")),
		"descriptors[0].entries[1].key \"subject\": the":         ask(descriptor("user=ann", "subject=bob")),
		"descriptors[0].entries[1].key \"path\": the":            ask(descriptor("route=/a", "path=/b")),
		"descriptors[0].entries[1].key \"ip\": the":              ask(descriptor("remote_address=192.0.2.1", "ip=192.0.2.1")),
		"descriptors[0].entries[0].value of tenant":              ask(descriptor("tenant=")),
		"descriptors[0].entries[0].value of user":                ask(descriptor("user=a b")),
		"descriptors[0].entries[0].value of path":                ask(descriptor("path=" + strings.Repeat("/x", bound.MaxRoute))),
		"descriptors[0].entries[0].value of route":               ask(descriptor("route=\x00")),
		"descriptors[0].entries[0].value of method":              ask(descriptor("method=G T")),
		"descriptors[0].entries[0].value of ip must":             ask(descriptor("ip=192.0.2.0/24")),
		"descriptors[0].entries[0].value of rule":                ask(descriptor("rule=")),
		"descriptors[0].entries[0].value of after_the_fact must": ask(descriptor("after_the_fact=yes")),
		"descriptors[0].entries[1].key \"after_the_fact\": the":  ask(descriptor("after_the_fact=true", "after_the_fact=true")),
		"descriptors[0].entries[16] names more":                  ask(descriptor(many(17, "rule=a")...)),
		"descriptors[1].limit": with(func(d *ratelimitv3.RateLimitDescriptor) {
			d.Limit = &ratelimitv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1}
		}),
		"descriptors[1].is_negative_hits": with(func(d *ratelimitv3.RateLimitDescriptor) { d.IsNegativeHits = true }),
		"descriptors[1].hits_addend":      with(func(d *ratelimitv3.RateLimitDescriptor) { d.HitsAddend = wrapperspb.UInt64(bound.MaxAmount + 1) }),
	} {
		_, err := readRequest(req)
		e, ok := errors.AsType[*badRequest](err)
		require.True(t, ok, "%s: %v", field, err)
		assert.True(t, statusOf(err).Code() == codes.InvalidArgument && strings.HasPrefix(statusOf(err).Message(), field), "%s: %v", field, err)
		assert.Contains(t, fields, e.field, "%s is no value of the metric's label", e.field)
		mayChoose := strings.Contains(field, "hits_addend") ||
			strings.Contains(field, "].value of ") && !slices.ContainsFunc([]string{"tenant", "rule", "after_the_fact"}, func(configured string) bool {
				return strings.HasSuffix(strings.TrimSuffix(field, " must"), configured)
			})
		if e.chosen != mayChoose || strings.HasPrefix(field, "descriptors[") && !strings.HasPrefix(field, fmt.Sprintf("descriptors[%d]", e.descriptor)) {
			t.Errorf("%s: a client may choose it: %t, in %+v", field, mayChoose, e)
		}
	}
}

// FuzzRequest: reading a request of an unknown caller does not panic for any message.
func FuzzRequest(f *testing.F) {
	seed, err := proto.Marshal(ask(descriptor("tenant=acme", "path=/%2e%2e/", "ip=::1", "rule=a")))
	require.NoError(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, message []byte) {
		var req rls.RateLimitRequest
		if proto.Unmarshal(message, &req) != nil {
			return
		}
		charges, err := readRequest(&req)
		e, ok := errors.AsType[*badRequest](err)
		assert.False(t, err != nil && (!ok || !slices.Contains(fields, e.field)), err)
		for _, c := range charges {
			assert.False(t, !bound.ID(c.Tenant) || !bound.Amount(c.Cost) || c.Subject != "" && !bound.ID(c.Subject) ||
				c.Route != "" && !bound.Route(c.Route), "%+v", c)
		}
	})
}
