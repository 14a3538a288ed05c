package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// withHits returns a copy of d that has its own number of hits, as Envoy sends it for `hits_addend` of a rate limit. 0
// hits are a look.
func withHits(d *ratelimitv3.RateLimitDescriptor, hits uint64) *ratelimitv3.RateLimitDescriptor {
	own := proto.CloneOf(d)
	own.HitsAddend = wrapperspb.UInt64(hits)
	return own
}

// limitState is the part of a bucket's state that these tests compare.
type limitState struct{ Remaining, Owed int64 }

// state returns the state of acme's bucket of a limit.
func (in *instance) state(t testing.TB, rule string) limitState {
	t.Helper()
	return decoded[limitState](t, in.do(t, http.StatusOK, "GET", "/v1/limits/"+rule+"/state?tenant=acme", "", nil))
}

// tokens stores a limit of 1000 tokens a day for each tenant that may owe 5000 more, and returns its descriptor.
func (r *rateLimited) tokens(t testing.TB, rule, kind string, more ...object) *ratelimitv3.RateLimitDescriptor {
	t.Helper()
	limit := object{
		"per": []string{"tenant"}, "kind": kind, "rate": "1000/day", "debt": 5000, "match": object{"route": "/" + rule},
	}
	for _, fields := range more {
		for name, value := range fields {
			limit[name] = value
		}
	}
	r.do(t, http.StatusCreated, "PUT", "/v1/limits/"+rule, "", limit)
	d := envoyDescriptor("tenant=acme", "route=/"+rule, "rule="+rule)
	never := proto.CloneOf(d) // this look is not the look of a report
	never.Entries = append(never.Entries, &ratelimitv3.RateLimitDescriptor_Entry{Key: "after_the_fact", Value: "false"})
	testenv.Eventually(t, func() bool {
		_, err := r.charge(t, testKey, 0, withHits(never, 0))
		return err == nil
	}, "limit ", rule, " is known")
	return d
}

// Envoy looks before a request, and reports the number of tokens at its end. The reports count although too few tokens
// are left, so that the caller is stopped at its next look.
func TestEnvoyRateLimit_ReportAfterLook_CountsBeyondWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := newRateLimited(t, insecure.NewCredentials())
	r.setUp(t, 1000)
	for _, kind := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window"} {
		d := r.tokens(t, strings.ReplaceAll(kind, "_", "-"), kind)
		rule := d.GetEntries()[2].GetValue()
		look, report := withHits(d, 0), withHits(d, 600)
		for range 2 {
			r.want(t, "OK: OK", 0, look)
			r.want(t, "OK: OK", 0, report)
		}
		assert.Equal(t, limitState{Owed: 200}, r.state(t, rule), kind)
		for range 3 {
			out := r.want(t, "OVER_LIMIT: OVER_LIMIT", 0, look)
			assert.Zero(t, out.GetStatuses()[0].GetLimitRemaining(), kind)
		}
		r.want(t, "OK: OK", 0, report) // it passed a look, whatever the look's answer was
		assert.Equal(t, limitState{Owed: 800}, r.state(t, rule), kind)
	}
}

// The entry after_the_fact says by itself that a descriptor is a report, so the report may arrive at any instance, and
// without a look. The entry does not change the bucket.
func TestEnvoyRateLimit_AfterTheFact_CountsAtAnyInstance(t *testing.T) {
	t.Parallel()
	env := backends(t)
	a := rateLimitedBy(t, insecure.NewCredentials(), env)
	a.setUp(t, 1000)
	b := rateLimitedBy(t, insecure.NewCredentials(), env)
	d := a.tokens(t, "tok", "token_bucket")
	testenv.Eventually(t, func() bool {
		_, err := b.charge(t, testKey, 1, d)
		return err == nil
	}, "the other instance knows the limit")
	report := envoyDescriptor("after_the_fact=true", "tenant=acme", "route=/tok", "rule=tok")
	b.want(t, "OK: OK", 600, report) // the hits of the request count too
	b.want(t, "OK: OK", 0, withHits(report, 600))
	assert.Equal(t, limitState{Owed: 201}, a.state(t, "tok"))
	a.want(t, "OVER_LIMIT: OVER_LIMIT", 0, withHits(d, 0))
	a.want(t, "OVER_LIMIT: OVER_LIMIT", 0, withHits(report, 0)) // a look takes nothing and is answered as a look
	a.want(t, "OK: OK", 1_000_000_000, report)
	assert.Equal(t, limitState{Owed: 5000}, a.state(t, "tok"), "more than the debt is owed")

	a.do(t, http.StatusOK, "POST", "/v1/limits/tok/reset", "", object{"tenant": "acme"})
	a.want(t, "OK: OK", 0, withHits(d, 0))
	b.want(t, "OVER_LIMIT: OVER_LIMIT", 1001, d) // the look was at the other instance, so this is an ordinary charge
	assert.Equal(t, limitState{Remaining: 1000}, b.state(t, "tok"))
}

func TestEnvoyRateLimit_Look_UsedByOneReport(t *testing.T) {
	t.Parallel()
	r := newRateLimited(t, insecure.NewCredentials())
	r.setUp(t, 1000)
	d := r.tokens(t, "tok", "token_bucket")
	reset := func(want limitState) {
		t.Helper()
		assert.Equal(t, want, r.state(t, "tok"))
		r.do(t, http.StatusOK, "POST", "/v1/limits/tok/reset", "", object{"tenant": "acme"})
	}
	with := func(value string) *ratelimitv3.RateLimitDescriptor {
		return envoyDescriptor("tenant=acme", "route=/tok", "rule=tok", "after_the_fact="+value)
	}
	r.want(t, "OVER_LIMIT: OVER_LIMIT", 1001, d)
	r.want(t, "OK: OK", 1, withHits(d, 0))
	r.want(t, "OK: OK", 1, withHits(d, 0))
	r.want(t, "OK: OK", 1001, d)
	r.want(t, "OK: OK", 1001, d)
	r.want(t, "OVER_LIMIT: OVER_LIMIT", 1, d) // both looks are used
	reset(limitState{Owed: 1002})

	// The path of the look and that of the report may differ in their spelling, and the entries in their order.
	r.want(t, "OK: OK", 1, withHits(envoyDescriptor("path=/tok?q=1", "tenant=acme", "rule=tok"), 0))
	r.want(t, "OK: OK", 1001, d)
	reset(limitState{Owed: 1})

	// A look at another descriptor is no look at this one.
	for _, other := range []string{"user=ann", "method=POST", "ip=192.0.2.1", "rule=tok"} {
		r.want(t, "OK: OK", 1, withHits(envoyDescriptor("tenant=acme", "route=/tok", "rule=tok", other), 0))
		r.want(t, "OVER_LIMIT: OVER_LIMIT", 1001, d)
	}
	reset(limitState{Remaining: 1000})

	// The entry with false is the exception from the default: it uses no look, and its looks are forgotten.
	r.want(t, "OK: OK", 1, withHits(d, 0))
	r.want(t, "OVER_LIMIT: OVER_LIMIT", 1001, with("false"))
	r.want(t, "OK: OK", 1001, with("true")) // this is the report of the look
	r.want(t, "OVER_LIMIT: OVER_LIMIT", 1, d)
	reset(limitState{Owed: 1})
	r.want(t, "OK: OK", 1, withHits(with("false"), 0))
	r.want(t, "OVER_LIMIT: OVER_LIMIT", 1001, d)
	reset(limitState{Remaining: 1000})

	// Each descriptor of a request has its own hits. A look is not the look of the same request's report.
	other := r.tokens(t, "other", "token_bucket")
	r.want(t, "OVER_LIMIT: OK OVER_LIMIT OK", 3, withHits(d, 0), withHits(d, 1001), other)
	r.want(t, "OK: OK OK", 1001, d, withHits(other, 0))
	assert.Equal(t, limitState{Remaining: 997}, r.state(t, "other"))
	reset(limitState{Owed: 1})

	for _, value := range []string{"maybe", "", "True", "1"} {
		const fault = "descriptors[0].entries[3].value of after_the_fact must be true or false"
		r.fails(t, testKey, codes.InvalidArgument, fault, with(value))
	}
	twice := envoyDescriptor("tenant=acme", "after_the_fact=false", "after_the_fact=true")
	r.fails(t, testKey, codes.InvalidArgument, `entries[2].key "after_the_fact": the descriptor names this`, twice)
	unknown := envoyDescriptor("tenant=acme", "rule=none-such", "after_the_fact=true")
	r.fails(t, testKey, codes.NotFound, "none-such", withHits(unknown, 0))
	r.fails(t, testKey, codes.NotFound, "none-such", unknown)
}

// A limit in shadow mode owes as a live one does, so that its numbers show what the live limit would do.
func TestEnvoyRateLimit_Report_ShadowLimitOwes(t *testing.T) {
	t.Parallel()
	r := newRateLimited(t, insecure.NewCredentials())
	r.setUp(t, 1000)
	d := r.tokens(t, "tok", "fixed_window", object{"mode": "shadow"})
	for range 2 {
		out := r.want(t, "OK: OK", 0, withHits(d, 0))
		assert.Nil(t, out.GetStatuses()[0].GetCurrentLimit(), "a shadow limit is shown: %v", out)
		r.want(t, "OK: OK", 0, withHits(d, 1100))
	}
	assert.Equal(t, limitState{Owed: 1200}, r.state(t, "tok"))
}

// While Redis is away, an instance counts reports by itself. A closed limit refuses everything, reports as well.
func TestEnvoyRateLimit_ReportWithoutRedis_CountsLocally(t *testing.T) {
	t.Parallel()
	redis := testenv.RedisPrivate(t)
	r := rateLimitedBy(t, insecure.NewCredentials(), using(testenv.PostgresService(t), redis.URL))
	r.setUp(t, 1000)
	local := r.tokens(t, "tok", "token_bucket")
	open := r.tokens(t, "open", "token_bucket", object{"on_backend_error": "open"})
	closed := r.tokens(t, "closed", "token_bucket", object{"on_backend_error": "closed"})
	r.want(t, "OK: OK OK OK", 1, local, open, closed)
	redis.Kill()
	r.want(t, "OVER_LIMIT: OK OK OVER_LIMIT", 0, withHits(local, 0), withHits(open, 0), withHits(closed, 0))
	r.want(t, "OVER_LIMIT: OK OK OVER_LIMIT", 1100, local, open, closed)
	r.want(t, "OVER_LIMIT: OVER_LIMIT OK OVER_LIMIT", 0, withHits(local, 0), withHits(open, 0), withHits(closed, 0))
}

// Envoy's own X-RateLimit headers describe the status with the fewest remaining hits, so this must be the limit that
// refuses.
func TestEnvoyRateLimit_StatusOverLimit_NothingRemains(t *testing.T) {
	t.Parallel()
	r := newRateLimited(t, insecure.NewCredentials())
	r.setUp(t, 1000)
	r.put(t, "hourly", object{"per": []string{"tenant"}, "kind": "fixed_window", "rate": "10/h"})
	r.put(t, "daily", object{"per": []string{"tenant"}, "kind": "fixed_window", "rate": "2/day"})
	hourly, daily := envoyDescriptor("tenant=acme", "rule=hourly"), envoyDescriptor("tenant=acme", "rule=daily")
	r.want(t, "OK: OK", 7, hourly)
	out := r.want(t, "OVER_LIMIT: OVER_LIMIT OK", 0, withHits(hourly, 5), withHits(daily, 1))
	over, passed := out.GetStatuses()[0], out.GetStatuses()[1]
	assert.True(t, over.GetLimitRemaining() == 0 && over.GetCurrentLimit().GetName() == "hourly", out)
	assert.EqualValues(t, 1, passed.GetLimitRemaining(), out)
	assert.Contains(t, headersOf(out), `ratelimit: "hourly";r=3;t=`, "the header says what is left")
}

// A client may have chosen the value of a bad descriptor, so the request is refused. The operator sees the reason in
// the answer, in the log and in a metric.
func TestEnvoyRateLimit_BadDescriptor_IsSeen(t *testing.T) {
	t.Parallel()
	r := newRateLimited(t, insecure.NewCredentials())
	r.setUp(t, 1000)
	for field, bad := range map[string]*ratelimitv3.RateLimitDescriptor{
		"subject":     envoyDescriptor("tenant=acme", "user=a b"),
		"route":       envoyDescriptor("tenant=acme", "path=/"+strings.Repeat("x", 300)),
		"method":      envoyDescriptor("tenant=acme", "method=G T"),
		"ip":          envoyDescriptor("tenant=acme", "remote_address=here"),
		"hits_addend": withHits(envoyDescriptor("tenant=acme"), 1<<60),
	} {
		for range 3 {
			out := r.want(t, "OVER_LIMIT: OK OVER_LIMIT", 1, envoyDescriptor("tenant=acme"), bad)
			assert.Equal(t, "x-quota-problem: invalid_argument; field="+field, headersOf(out))
		}
		assert.Contains(t, r.metrics(t), fmt.Sprintf("quotasvc_envoy_bad_descriptors_total{field=%q} 3", field))
	}
	r.fails(t, testKey, codes.InvalidArgument, "unknown", envoyDescriptor("tenant=acme", "usr=secret-of-ann"))
	r.fails(t, testKey, codes.InvalidArgument, "tenant", envoyDescriptor("tenant=a b"))
	got := r.metrics(t)
	for _, metric := range []string{
		`quotasvc_envoy_bad_descriptors_total{field="key"} 1`,
		`quotasvc_envoy_bad_descriptors_total{field="tenant"} 1`,
		`quotasvc_envoy_bad_descriptors_total{field="rule"} 0`,
		`quotasvc_envoy_bad_descriptors_total{field="after_the_fact"} 0`,
	} {
		assert.Contains(t, got, metric)
	}
	r.stop()
	warnings := map[string]int{}
	for line := range strings.Lines(r.stderr.String()) {
		if strings.Contains(line, `"level":"WARN"`) && strings.Contains(line, "rate limit filter cannot be read") {
			_, rest, found := strings.Cut(line, `"field":"`)
			require.True(t, found, line)
			field, _, _ := strings.Cut(rest, `"`)
			warnings[field]++
			shown := strings.Contains(line, "a b") || strings.Contains(line, "secret-of")
			assert.False(t, shown, "a value is in the log: %s", line)
		}
	}
	each := map[string]int{"subject": 1, "route": 1, "method": 1, "ip": 1, "hits_addend": 1, "key": 1, "tenant": 1}
	assert.Equal(t, each, warnings)
}
