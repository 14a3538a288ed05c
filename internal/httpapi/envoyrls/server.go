package envoyrls

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/limitheaders"
)

const (
	// messageMax is the maximum size of a request message in bytes. A request with descriptorsMax descriptors and the
	// longest values has half this size.
	messageMax = 64 << 10

	// headersMax is the maximum size of a request's metadata in bytes. A key, a trace and an id need a tenth of this
	// size.
	headersMax = 16 << 10

	// connectionStreamsMax is the maximum number of requests in progress on one connection. Each worker of Envoy has
	// one connection.
	connectionStreamsMax = 256

	// streamsMax is the maximum number of requests in progress on all connections. Their messages of at most 64 KiB
	// need at most 256 MiB.
	streamsMax = 4096
)

const (
	handshakeTimeout = 5 * time.Second  // from the accepted connection to the end of the TLS and HTTP/2 handshakes
	idleTimeout      = 5 * time.Minute  // an idle connection is closed: Envoy opens a new one
	pingEvery        = 30 * time.Second // a silent connection is pinged, and closed after pingTimeout
	pingTimeout      = 10 * time.Second
	pingsMin         = 10 * time.Second // a client that pings more often loses its connection
)

// Config configures a Server.
type Config struct {
	// Keys authenticates callers. Required.
	Keys *access.Directory

	// RequestTimeout bounds the time from the headers of a request to its answer. Required.
	RequestTimeout time.Duration

	// LegacyHeaders are the older header sets that are sent in addition to the RateLimit headers.
	LegacyHeaders []limitheaders.Legacy

	// Tracer creates a span for each request; nil: no spans.
	Tracer trace.Tracer

	// Log receives one line for each request. Required.
	Log *slog.Logger

	// Metrics is the registry for the metrics of requests. Required.
	Metrics prometheus.Registerer
}

// Server answers the rate limit requests of Envoy.
type Server struct {
	rls.UnimplementedRateLimitServiceServer
	grpc_health_v1.UnimplementedHealthServer // it has no Watch: Watch's streams would delay a stop

	gate    *gate.Gate
	cfg     Config
	limits  limitheaders.Writer
	metrics *metrics
	looks   *looks
	warned  warned
	grpc    *grpc.Server

	streams  atomic.Int64
	stopping atomic.Bool
}

// SetLogger sets the logger of gRPC for this process. It must be called before New. Without it, gRPC writes its errors to
// standard error, and requests wait until somebody reads them.
func SetLogger(log *slog.Logger) {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, slog.NewLogLogger(log.Handler(), slog.LevelWarn).Writer()))
}

// New returns a server that does not listen yet. It panics if cfg.Metrics already has metrics with the same names.
func New(g *gate.Gate, cfg Config) *Server {
	s := &Server{gate: g, cfg: cfg, limits: limitheaders.Writer{Legacy: cfg.LegacyHeaders}, metrics: newMetrics(cfg.Metrics), warned: warned{last: map[string]time.Time{}}}
	s.looks = newLooks(time.Now(), s.metrics.forgotten)
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

// Serve accepts connections on l until Stop is called. If the listener fails earlier, Serve returns its error.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Drain makes the health service report that the server is about to stop. The server still answers requests.
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
		s.grpc.Stop() // after it, GracefulStop returns
		<-stopped
		return fmt.Errorf("finish requests of Envoy: %w", context.Cause(ctx))
	}
}

// admit limits the time of a stream. It refuses the stream if streamsMax streams are open. gRPC calls admit before it
// reads the stream's message.
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

// Check implements the health service. It does not require a key.
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
