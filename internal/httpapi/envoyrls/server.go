package envoyrls

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/limitheaders"
)

const (
	// messageMax bounds a request in bytes. A request with descriptorsMax descriptors and the longest values has half
	// of this size.
	messageMax = 64 << 10

	// headersMax bounds the metadata of a request in bytes. A key, a trace and an id need a tenth of this size.
	headersMax = 16 << 10

	// connectionStreamsMax bounds the requests in progress on a connection. Each worker of Envoy has one connection.
	connectionStreamsMax = 256

	// streamsMax bounds the requests in progress on all connections. At 64 KiB each, their messages need at most 256
	// MiB.
	streamsMax = 4096
)

const (
	handshakeTimeout = 5 * time.Second  // from the connection to the end of the HTTP/2 handshake, with TLS
	idleTimeout      = 5 * time.Minute  // Envoy opens a connection again when it needs one
	pingEvery        = 30 * time.Second // the server pings silent connections and closes them after pingTimeout
	pingTimeout      = 10 * time.Second
	pingsMin         = 10 * time.Second // a client that pings more often loses its connection
)

// Config configures a Server.
type Config struct {
	// Keys authenticates callers. Required.
	Keys *access.Directory

	// RequestTimeout bounds a request from its headers to its answer. Required.
	RequestTimeout time.Duration

	// LegacyHeaders are sent in addition to the RateLimit headers.
	LegacyHeaders []limitheaders.Legacy

	// Tracer creates a span for each request; nil: no spans.
	Tracer trace.Tracer

	// Log gets one line per request. Required.
	Log *slog.Logger

	// Metrics gets the metrics of requests. Required.
	Metrics prometheus.Registerer
}

// Server answers Envoy.
type Server struct {
	rls.UnimplementedRateLimitServiceServer
	grpc_health_v1.UnimplementedHealthServer // Watch stays unimplemented: its streams would delay a stop

	gate    *gate.Gate
	cfg     Config
	limits  limitheaders.Writer
	metrics *metrics
	grpc    *grpc.Server

	streams  atomic.Int64
	stopping atomic.Bool
}

// New returns a server that does not listen yet. It panics if its metrics are already in the registry.
func New(g *gate.Gate, cfg Config) *Server {
	s := &Server{gate: g, cfg: cfg, limits: limitheaders.Writer{Legacy: cfg.LegacyHeaders}, metrics: newMetrics(cfg.Metrics)}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(messageMax), grpc.MaxHeaderListSize(headersMax), grpc.MaxConcurrentStreams(connectionStreamsMax),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.InTapHandle(s.admit), grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: pingEvery, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsMin, PermitWithoutStream: true}),
	)
	rls.RegisterRateLimitServiceServer(s.grpc, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s)
	return s
}

// Serve answers on l until Stop. If the listener fails before, it returns the listener's error.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Drain makes the health service report that the server is about to stop. Requests are still answered.
func (s *Server) Drain() { s.stopping.Store(true) }

// Stop asks clients to send no more requests to this server, and finishes the requests in progress. If ctx ends
// first, it aborts the remaining requests and returns ctx's error.
func (s *Server) Stop(ctx context.Context) error {
	s.Drain()
	stopped := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		s.grpc.Stop() // it makes GracefulStop return
		<-stopped
		return fmt.Errorf("finish requests of Envoy: %w", context.Cause(ctx))
	}
}

// admit gives a stream its time limit, and refuses it if there are too many streams. gRPC calls admit before it reads
// the message.
func (s *Server) admit(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if s.streams.Add(1) > streamsMax {
		s.streams.Add(-1)
		s.metrics.count(codes.Unavailable.String())
		return nil, status.Error(codes.Unavailable, "too many requests at a time")
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.RequestTimeout)
	context.AfterFunc(ctx, func() { // the stream has ended
		cancel()
		s.streams.Add(-1)
	})
	return ctx, nil
}

// Check implements the health service. It needs no key.
func (s *Server) Check(_ context.Context, req *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if name := req.GetService(); name != "" && name != rls.RateLimitService_ServiceDesc.ServiceName {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	state := grpc_health_v1.HealthCheckResponse_SERVING
	if s.stopping.Load() {
		state = grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return &grpc_health_v1.HealthCheckResponse{Status: state}, nil
}
