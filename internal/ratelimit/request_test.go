package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func TestRequest_Check(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, nil, settings{})
	limit := compile(t, rule.Spec{Rate: "10/s"})
	var seventeen []Charge
	for i := range 17 {
		seventeen = append(seventeen, Charge{Rule: compile(t, rule.Spec{ID: fmt.Sprintf("r%d", i), Rate: "1/s"})})
	}
	for name, tc := range map[string]struct {
		req   Request
		field string
	}{
		"no tenant":          {Request{}, "tenant"},
		"tenant in brackets": {Request{Tenant: "a><b"}, "tenant"},
		"tenant newline":     {Request{Tenant: "a\n"}, "tenant"},
		"tenant of 256":      {Request{Tenant: strings.Repeat("a", 256)}, "tenant"},
		"17 rules":           {Request{Tenant: "a", Charges: seventeen}, "charges"},
		"no rule":            {Request{Tenant: "a", Charges: []Charge{{}}}, "charges[0].rule"},
		"rule not compiled":  {Request{Tenant: "a", Charges: []Charge{{Rule: &rule.Rule{ID: "x"}}}}, "charges[0].rule"},
		"negative cost":      {Request{Tenant: "a", Charges: []Charge{{Rule: limit, Cost: -1}}}, "charges[0].cost"},
		"cost of 2^53":       {Request{Tenant: "a", Charges: []Charge{{Rule: limit, Cost: 1 << 53}}}, "charges[0].cost"},
		"raw dimension":      {Request{Tenant: "a", Charges: []Charge{{Rule: limit, Dimension: "alice}"}}}, "charges[0].dimension"},
		"same bucket twice":  {Request{Tenant: "a", Charges: []Charge{{Rule: limit}, {Rule: limit, Cost: 2}}}, "charges[1].rule"},
	} {
		for _, do := range []func(context.Context, Request) error{
			func(ctx context.Context, r Request) error { _, err := l.Consume(ctx, r); return err },
			func(ctx context.Context, r Request) error { _, err := l.Peek(ctx, r); return err },
			func(ctx context.Context, r Request) error { _, err := l.Refund(ctx, r); return err },
		} {
			err := do(context.Background(), tc.req)
			field, ok := errors.AsType[*rule.FieldError](err)
			assert.True(t, ok && field.Field == tc.field, "%s: %v; want an error on %s", name, err, tc.field)
		}
	}
	ok := Request{Tenant: strings.Repeat("a", 255), Charges: append(seventeen[:15:15], Charge{Rule: limit, Dimension: rule.Dimension("x")})}
	assert.True(t, mustConsume(t, l, ok).Allowed, "16 rules are refused")
	d := mustConsume(t, l, Request{Tenant: "a"})
	assert.True(t, d.Allowed && len(d.Verdicts) == 0, "a request without rules: %+v", d)
}

func TestDimension_SeparatesAndHidesValues(t *testing.T) {
	t.Parallel()
	hostile := strings.Repeat("}{\n\x00", 250_000)
	seen := make(map[string][]string)
	for _, values := range [][]string{{}, {""}, {"", ""}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"abc", ""}, {hostile}, {"a\x00b"}, {"a", "b"}} {
		d := rule.Dimension(values...)
		assert.True(t, rule.IsDimension(d) && len(d) == 16, "Dimension gives %q", d)
		other, dup := seen[d]
		assert.False(t, dup, "%.20q and %.20q share a bucket", values, other)
		seen[d] = values
		assert.Equal(t, rule.Dimension(values...), d, "Dimension is not a function")
	}
}

// TestDimension_DoesNotChange: dimensions are parts of keys in Redis, and older and newer versions of the service use
// the same keys.
func TestDimension_DoesNotChange(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]string{
		"47DEQpj8HBSa-_TI": nil, "bqmI7nN6aND7HXu3": {"alice"}, "YB1UduLM_iyHorun": {"ab", "c"},
		"dJrsC8KxN0LSPZB_": {strings.Repeat("s", 200), strings.Repeat("r", 300)}, // longer than usual values
	} {
		got := rule.Dimension(values...)
		assert.True(t, got == want, "%q: %s, want %s", values, got, want)
	}
}

func TestBucketKey_TenantsShareASlotSharedRulesDoNot(t *testing.T) {
	t.Parallel()
	a, b := compile(t, rule.Spec{ID: "a", Rate: "1/s"}), compile(t, rule.Spec{ID: "a:b", Rate: "1/s"})
	shared := compile(t, rule.Spec{ID: "a", Rate: "1/s", Shared: true})
	seen := make(map[string]bool)
	for _, tc := range []struct {
		tenant    string
		rule      *rule.Rule
		dimension string
		key, tag  string
	}{
		{"acme", a, "", "rl:{acme}t:a", "acme"},
		{"acme", b, "", "rl:{acme}t:a:b", "acme"},
		{"acme", a, rule.Dimension("b"), "rl:{acme}t:a/" + rule.Dimension("b"), "acme"},
		{"acme", b, rule.Dimension("b"), "rl:{acme}t:a:b/" + rule.Dimension("b"), "acme"},
		{"a", a, "", "rl:{a}t:a", "a"},
		{"acme", shared, "", "rl:{a}t", "a"},
		{"acme", shared, rule.Dimension("b"), "rl:{a/" + rule.Dimension("b") + "}t", "a/" + rule.Dimension("b")},
	} {
		key, tag := tc.rule.BucketKey(tc.tenant, tc.dimension)
		assert.True(t, key == tc.key && tag == tc.tag && !seen[key],
			"the key is %s with tag %s, want %s and %s", key, tag, tc.key, tc.tag)
		seen[key] = true
		name, err := rule.Bucket{Tenant: tc.tenant, Rule: tc.rule, Dimension: tc.dimension}.Name()
		assert.True(t, err == nil && name == key && redisstore.HashTag(name) == tag, "%s: %s, %v", key, name, err)
	}
	name, err := rule.Bucket{Rule: shared}.Name()
	assert.True(t, err == nil && name == "rl:{a}t", "%s, %v: a shared bucket needs no tenant", name, err)
	_, again := shared.BucketKey("other", "")
	assert.EqualValues(t, "a", again, "another tenant's shared bucket has tag")
}

// TestQuery_Parts_TenantsOwnIsLast: the part in the tenant's own slot is charged last. If it denies, the charges of
// all earlier parts are refunded.
func TestQuery_Parts_TenantsOwnIsLast(t *testing.T) {
	t.Parallel()
	own, global := compile(t, rule.Spec{ID: "own", Rate: "1/s"}), compile(t, rule.Spec{ID: "global", Rate: "1/s", Shared: true})
	ip := compile(t, rule.Spec{ID: "ip", Rate: "1/s", Shared: true})
	q := queryFor(t, "acme", Charge{Rule: own}, Charge{Rule: global}, Charge{Rule: own, Dimension: rule.Dimension("x")},
		Charge{Rule: ip, Dimension: rule.Dimension("192.0.2.1")})
	parts := q.parts()
	got := ""
	for _, p := range parts {
		got += fmt.Sprint(p.positions)
		for i, c := range p.charges {
			assert.True(t, c.key == q.charges[p.positions[i]].key && p.tenant == "acme" && p.op == rule.Consume,
				"%+v is not charge %d", c, p.positions[i])
		}
	}
	assert.Equal(t, "[1][3][0 2]", got, "parts")
	empty := query{}
	assert.Empty(t, empty.parts(), "parts of a request without rules")
}
