package envoyrls

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/proven"
)

// errPanic is the error that is logged and answered as Internal if the handler panics.
var errPanic = errors.New("panic")

// requestIDMax is the maximum length of the x-request-id that a caller sends, in bytes.
const requestIDMax = 128

// call is a request while it is decided, with the facts for its line of the access log.
type call struct {
	server    *Server
	started   time.Time
	requestID string
	span      trace.Span // nil: no tracing
	peer      netip.AddrPort
	key       *access.Key  // nil: the caller has no valid key
	tenant    string       // the tenant of the first descriptor
	refused   errcode.Code // the code of the first refused descriptor
	violated  []string
	cause     error // why the answer is an error; nil: it is no error
}

// ShouldRateLimit charges the limits of each descriptor.
func (s *Server) ShouldRateLimit(ctx context.Context, req *rls.RateLimitRequest) (out *rls.RateLimitResponse, err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	c := &call{server: s, started: time.Now(), requestID: requestID(md), peer: peerOf(ctx)}
	ctx = c.begin(ctx, md)
	defer s.metrics.inFlight.Begin(c.started).End()
	defer func() {
		if cause := recover(); cause != nil {
			out, err = nil, fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack())
		}
		switch {
		case err == nil:
		case ctx.Err() != nil: // the caller has given up, so it does not see err
			c.cause, err = err, status.FromContextError(ctx.Err()).Err()
		default:
			c.cause, err = err, statusOf(err).Err()
		}
		c.observe(ctx, out, status.Code(err))
	}()
	if err := c.enter(ctx, md); err != nil {
		return nil, err
	}
	charges, err := readRequest(req)
	if e, ok := errors.AsType[*badRequest](err); ok {
		c.observeBad(ctx, e)
		if !e.chosen {
			return nil, err
		}
		c.refused, c.cause = errcode.InvalidArgument, err
		results := make([]result, len(req.GetDescriptors()))
		results[e.descriptor] = result{refusal: refusal{over: true}, bad: e.field}
		return s.answer(results), nil
	}
	c.tenant = charges[0].Tenant
	for i := range charges {
		if tenant := charges[i].Tenant; !c.key.May(tenant) {
			c.tenant = tenant
			return nil, status.Error(codes.PermissionDenied, "the key is bound to another tenant")
		}
	}
	s.looks.pair(charges, c.started)
	results := s.chargeAll(ctx, charges)
	for i := range results {
		switch r := &results[i]; {
		case r.err == nil:
		case !r.refusal.over:
			c.violated = r.refusal.violated
			return nil, r.err
		default:
			c.refused = gate.CodeOf(r.err)
			c.violated = append(c.violated, r.refusal.violated...)
		}
	}
	return s.answer(results), nil
}

// enter authenticates the caller by the key in its metadata.
func (c *call) enter(ctx context.Context, md metadata.MD) error {
	authorization := ""
	switch keys := md.Get("authorization"); len(keys) {
	case 0:
	case 1:
		authorization = keys[0]
	default: // a proxy may have checked one key, and this server would check another
		return status.Error(codes.InvalidArgument, "authorization must appear once")
	}
	key, err := c.server.cfg.Keys.Authenticate(ctx, authorization, c.peer.Addr, c.started)
	if err != nil {
		return err
	}
	c.key = key
	if p, ok := peer.FromContext(ctx); ok {
		if visitor, ok := p.Addr.(*proven.Addr); ok {
			visitor.Note()
		}
	}
	if !key.Scopes.Has(access.Use) {
		return status.Errorf(codes.PermissionDenied, "this needs a key with the scope %s; this key has %s", access.Use, key.Scopes)
	}
	return nil
}

// chargeAll charges all descriptors concurrently, because each charge may need a round trip to Redis. Their order
// does not matter.
func (s *Server) chargeAll(ctx context.Context, charges []charge) []result {
	results := make([]result, len(charges))
	if len(charges) == 1 {
		results[0] = s.charge(ctx, charges[0].ChargeRequest)
		return results
	}
	var all sync.WaitGroup
	for i := range charges {
		all.Go(func() { results[i] = s.charge(ctx, charges[i].ChargeRequest) })
	}
	all.Wait()
	return results
}

func (s *Server) charge(ctx context.Context, req gate.ChargeRequest) (r result) {
	defer func() { // charge may run on its own goroutine, where a panic would end the process
		if cause := recover(); cause != nil {
			r = result{err: fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack())}
		}
	}()
	done, err := s.gate.Charge(ctx, req)
	return result{limits: done.Limits, degraded: done.LimitsDegraded, err: err, refusal: refusalOf(err)}
}

// requestID returns the caller's x-request-id if it can be logged. Otherwise it returns a random id.
func requestID(md metadata.MD) string {
	if given := md.Get("x-request-id"); len(given) == 1 && bound.ASCII(given[0], '!', 1, requestIDMax) {
		return given[0]
	}
	return rand.Text()
}

func peerOf(ctx context.Context) netip.AddrPort {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return netip.AddrPort{}
	}
	at, _ := netip.ParseAddrPort(p.Addr.String()) // zero if there is none
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
