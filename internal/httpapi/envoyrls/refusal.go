package envoyrls

import (
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// refusal is an error of the gate in the form of an answer to Envoy.
type refusal struct {
	over     bool          // the request must not pass
	wait     time.Duration // the time until the same request may pass; 0: unknown, or never
	violated []string
}

// refusalOf translates an error of the gate. If over is false in the result, the error decides nothing about the
// request: see statusOf.
func refusalOf(err error) refusal {
	if e, ok := errors.AsType[*gate.RateLimited](err); ok {
		return refusal{over: true, wait: e.RetryAfter, violated: e.Violated}
	}
	if e, ok := errors.AsType[*gate.CostExceedsCapacity](err); ok {
		return refusal{over: true, violated: e.Violated}
	}
	if e, ok := errors.AsType[*gate.ReducedCapacity](err); ok {
		return refusal{over: true, wait: e.RetryAfter, violated: e.Violated}
	}
	if e, ok := errors.AsType[*gate.TooManyLimits](err); ok {
		return refusal{violated: e.Rules}
	}
	if _, ok := errors.AsType[*gate.Blocked](err); ok || gate.CodeOf(err) == errcode.TenantSuspended {
		return refusal{over: true}
	}
	return refusal{}
}

// statusOf returns the gRPC status for an error that decides nothing about the request. Envoy's setting
// failure_mode_deny then decides about it.
func statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	if e, ok := errors.AsType[*access.Refusal](err); ok {
		return ofKey(e)
	}
	if e, ok := errors.AsType[*badRequest](err); ok {
		return status.New(codes.InvalidArgument, e.Error())
	}
	detail := ""
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		if detail = e.Detail; len(e.Fields) > 0 {
			detail = e.Fields[0].Error()
		}
	}
	switch gate.CodeOf(err) {
	case errcode.InvalidArgument:
		return status.New(codes.InvalidArgument, detail)
	case errcode.TenantNotFound, errcode.NotFound:
		return status.New(codes.NotFound, detail)
	case gate.CodeTooManyLimits:
		return status.New(codes.FailedPrecondition, err.Error())
	case errcode.Unavailable, errcode.QueueFull:
		return status.New(codes.Unavailable, detail)
	default:
		return status.New(codes.Internal, "an internal error; the request id identifies it in our log")
	}
}

// ofKey returns the gRPC status for a refusal of the caller's key.
func ofKey(r *access.Refusal) *status.Status {
	switch r.Reason {
	case access.TooMany:
		return status.New(codes.ResourceExhausted, "too many wrong keys from this address")
	case access.Undecided:
		return status.New(codes.Unavailable, "the key is not known yet, and PostgreSQL does not answer")
	case access.Unknown:
		return status.New(codes.Unauthenticated, "the key is unknown, expired or revoked")
	default:
		return status.New(codes.Unauthenticated, "send the metadata authorization: Bearer <key> with a valid key")
	}
}
