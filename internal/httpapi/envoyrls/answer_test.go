package envoyrls

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

func verdict(rule string, remaining, limit int64, window int) gate.LimitVerdict {
	return gate.LimitVerdict{
		Rule: rule, Allowed: true, Remaining: remaining, Limit: limit, Policy: fmt.Sprintf(`"%s";q=%d;w=%d`, rule, limit, window), Full: time.Minute,
	}
}

func TestAnswer_Descriptors_MostRestrictiveLimitOfEach(t *testing.T) {
	t.Parallel()
	shadow, large := verdict("shadow", 0, 1, 1), verdict("large", math.MaxUint32+5, math.MaxUint32+9, 7)
	shadow.Shadow = true
	denied := verdict("a", 0, 10, 60)
	denied.Allowed, denied.RetryAfter = false, 5*time.Second
	out := (&Server{}).answer([]result{
		{limits: []gate.LimitVerdict{verdict("a", 7, 10, 60), verdict("b", 5, 10, 3600), shadow}},
		{limits: []gate.LimitVerdict{large}},
		{limits: []gate.LimitVerdict{denied}, refusal: refusal{over: true, wait: 5 * time.Second}, degraded: true},
		{limits: []gate.LimitVerdict{shadow}},
	})
	require.True(t, out.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT && len(out.GetStatuses()) == 4, out)
	for i, want := range []struct {
		code            rls.RateLimitResponse_Code
		rule            string
		remaining, most uint32
		unit            rls.RateLimitResponse_RateLimit_Unit
	}{
		{rls.RateLimitResponse_OK, "b", 5, 10, rls.RateLimitResponse_RateLimit_HOUR},
		{rls.RateLimitResponse_OK, "large", math.MaxUint32, math.MaxUint32, rls.RateLimitResponse_RateLimit_UNKNOWN},
		{rls.RateLimitResponse_OVER_LIMIT, "a", 0, 10, rls.RateLimitResponse_RateLimit_MINUTE},
		{rls.RateLimitResponse_OK, "", 0, 0, rls.RateLimitResponse_RateLimit_UNKNOWN},
	} {
		got := out.GetStatuses()[i]
		if limit := got.GetCurrentLimit(); got.GetCode() != want.code || limit.GetName() != want.rule || got.GetLimitRemaining() != want.remaining ||
			limit.GetRequestsPerUnit() != want.most || limit.GetUnit() != want.unit || (want.rule != "") != (got.GetDurationUntilReset().AsDuration() == time.Minute) {
			t.Errorf("%d: %v, want %+v", i, got, want)
		}
	}
	var headers []string
	for _, h := range out.GetResponseHeadersToAdd() {
		headers = append(headers, h.GetKey()+": "+h.GetValue())
	}
	got := strings.Join(headers, "\n")
	if !strings.HasPrefix(got, `ratelimit: "a";r=0;t=5, "b";r=5`) || strings.Count(got, `"a"`) != 2 || strings.Contains(got, "shadow") ||
		!strings.Contains(got, "\nratelimit-policy: \"a\";q=10;w=60, ") || !strings.Contains(got, "\nretry-after: 5") || !strings.Contains(got, "\nx-ratelimit-mode: local") {
		t.Error(got)
	}
}

func TestRefusal_Errors_OverLimitOrStatus(t *testing.T) {
	t.Parallel()
	of := func(code errcode.Code) error { return errcode.Errorf(code, "cost", "why") }
	for _, over := range []error{
		&gate.RateLimited{RetryAfter: time.Second}, &gate.CostExceedsCapacity{}, &gate.ReducedCapacity{RetryAfter: time.Second}, &gate.Blocked{}, of(errcode.TenantSuspended),
	} {
		assert.True(t, refusalOf(over).over, "%v passes a proxy that fails open", over)
	}
	for _, c := range []struct {
		err  error
		want codes.Code
	}{
		{of(errcode.TenantNotFound), codes.NotFound},
		{of(errcode.NotFound), codes.NotFound},
		{of(errcode.InvalidArgument), codes.InvalidArgument},
		{of(errcode.QueueFull), codes.Unavailable},
		{errors.Join(of(errcode.Unavailable), errors.New("the cause")), codes.Unavailable},
		{&gate.TooManyLimits{}, codes.FailedPrecondition},
		{&access.Refusal{Reason: access.Missing}, codes.Unauthenticated},
		{&access.Refusal{Reason: access.Unknown}, codes.Unauthenticated},
		{&access.Refusal{Reason: access.TooMany}, codes.ResourceExhausted},
		{&access.Refusal{Reason: access.Undecided}, codes.Unavailable},
		{fmt.Errorf("%w: secret", errPanic), codes.Internal},
	} {
		got := statusOf(c.err)
		assert.True(t, !refusalOf(c.err).over && got.Code() == c.want && !strings.Contains(got.Message(), "cause") &&
			!strings.Contains(got.Message(), "secret"), "%v: %v, want %s", c.err, got, c.want)
	}
}

// Envoy's X-RateLimit headers describe the status with the fewest remaining hits. A status that is over limit has none,
// whatever its limits have left.
func TestAnswer_StatusOverLimit_NothingRemains(t *testing.T) {
	t.Parallel()
	denied := verdict("denied", 3, 10, 3600)
	denied.Allowed = false
	out := (&Server{}).answer([]result{
		{limits: []gate.LimitVerdict{denied}, refusal: refusal{over: true}},
		{limits: []gate.LimitVerdict{verdict("passed", 2, 10, 60)}},
		{refusal: refusal{over: true}, bad: fieldSubject},
	})
	var left []uint32
	for _, s := range out.GetStatuses() {
		left = append(left, s.GetLimitRemaining())
	}
	assert.Equal(t, []uint32{0, 2, 0}, left)
	assert.Equal(t, "denied", out.GetStatuses()[0].GetCurrentLimit().GetName())
	problem := out.GetResponseHeadersToAdd()[len(out.GetResponseHeadersToAdd())-1]
	assert.Equal(t, "x-quota-problem: invalid_argument; field=subject", problem.GetKey()+": "+problem.GetValue())
}
