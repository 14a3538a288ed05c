package envoyrls

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/limitheaders"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// headerProblem is the header of an answer that refuses a request because a descriptor cannot be read. Its value is a
// structured field: the code of the error, and the part of the descriptor.
const headerProblem = "X-Quota-Problem"

// result is the outcome of charging the limits for one descriptor.
type result struct {
	limits   []gate.LimitVerdict
	degraded bool // the limits were decided without Redis
	err      error
	refusal  refusal
	bad      string // the part of the descriptor that cannot be read; empty: the descriptor was read
}

// answer returns the answer to a request from the results of all its descriptors.
func (s *Server) answer(results []result) *rls.RateLimitResponse {
	out := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK, Statuses: make([]*rls.RateLimitResponse_DescriptorStatus, len(results))}
	var all []gate.LimitVerdict
	var wait time.Duration
	header := http.Header{}
	for i := range results {
		r := &results[i]
		out.Statuses[i] = descriptorStatus(r)
		if r.refusal.over {
			out.OverallCode = rls.RateLimitResponse_OVER_LIMIT
		}
		wait = max(wait, r.refusal.wait)
		all = merge(all, r.limits)
		limitheaders.WriteMode(header, r.degraded)
		if r.bad != "" {
			header[headerProblem] = []string{string(errcode.InvalidArgument) + "; field=" + r.bad}
		}
	}
	longest := s.limits.Write(header, all)
	if wait > 0 {
		header["Retry-After"] = []string{s.limits.RetryAfter(max(wait, longest), all)}
	}
	for name, values := range header {
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, &corev3.HeaderValue{Key: strings.ToLower(name), Value: values[0]})
	}
	slices.SortFunc(out.ResponseHeadersToAdd, func(a, b *corev3.HeaderValue) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// merge appends verdicts to list. If several descriptors charge the same rule, it keeps only the most restrictive
// verdict.
func merge(list, verdicts []gate.LimitVerdict) []gate.LimitVerdict {
	for i := range verdicts {
		v := &verdicts[i]
		at := slices.IndexFunc(list, func(o gate.LimitVerdict) bool { return o.Rule == v.Rule })
		if at < 0 {
			list = append(list, *v)
		} else if worse := limitheaders.MostRestrictive([]gate.LimitVerdict{list[at], *v}); worse != nil {
			list[at] = *worse
		}
	}
	return list
}

func descriptorStatus(r *result) *rls.RateLimitResponse_DescriptorStatus {
	out := &rls.RateLimitResponse_DescriptorStatus{Code: rls.RateLimitResponse_OK}
	v := limitheaders.MostRestrictive(r.limits)
	switch {
	case r.refusal.over: // nothing remains, so that Envoy's X-RateLimit headers describe this limit and not one that passed
		out.Code = rls.RateLimitResponse_OVER_LIMIT
	case v != nil:
		out.LimitRemaining = saturated(v.Remaining)
	}
	if v != nil {
		out.CurrentLimit = &rls.RateLimitResponse_RateLimit{Name: v.Rule, RequestsPerUnit: saturated(v.Limit), Unit: unitOf(v.Policy)}
		out.DurationUntilReset = durationpb.New(v.Full)
	}
	return out
}

func saturated(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// unitOf returns the time unit that is as long as the window of the policy (w, in seconds). If no unit has that
// length, it returns UNKNOWN, and Envoy shows the limit without a window.
func unitOf(policy string) rls.RateLimitResponse_RateLimit_Unit {
	_, rest, _ := strings.Cut(policy, ";w=")
	digits, _, _ := strings.Cut(rest, ";")
	switch n, _ := strconv.Atoi(digits); n {
	case 1:
		return rls.RateLimitResponse_RateLimit_SECOND
	case 60:
		return rls.RateLimitResponse_RateLimit_MINUTE
	case 3600:
		return rls.RateLimitResponse_RateLimit_HOUR
	case 86400:
		return rls.RateLimitResponse_RateLimit_DAY
	default:
		return rls.RateLimitResponse_RateLimit_UNKNOWN
	}
}
