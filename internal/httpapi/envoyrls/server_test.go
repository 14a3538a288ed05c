package envoyrls

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

const testKey = "0123456789abcdef0123456789abcdef"

// running is a server without a gate. Its tests send requests that are answered before the gate is called.
type running struct {
	*Server
	t       testing.TB
	address string
	log     *testenv.Log
}

func start(t testing.TB, timeout time.Duration, change ...func(*Config)) *running {
	t.Helper()
	r := &running{t: t, log: &testenv.Log{}}
	keys, err := access.NewDirectory(nil, testKey, access.Config{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	cfg := Config{Keys: keys, RequestTimeout: timeout, Log: slog.New(slog.NewJSONHandler(r.log, nil)), Metrics: prometheus.NewRegistry()}
	for _, f := range change {
		f(&cfg)
	}
	r.Server = New(nil, cfg)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.address = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.Stop(ctx) // an error is expected if a test has left a stream open
		err := <-served
		assert.NoError(t, err)
	})
	return r
}

func (r *running) dial() *grpc.ClientConn {
	r.t.Helper()
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// silent opens a stream for a request and sends no message on it.
func (r *running) silent(ctx context.Context, conn *grpc.ClientConn) grpc.ClientStream {
	r.t.Helper()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, rls.RateLimitService_ShouldRateLimit_FullMethodName)
	require.NoError(r.t, err)
	if _, err := s.Header(); err != nil && err != io.EOF { //nolint:errorlint // gRPC returns it unwrapped
		r.t.Log(err)
	}
	return s
}

func TestServer_SilentStream_EndsInTime(t *testing.T) {
	t.Parallel()
	r := start(t, 100*time.Millisecond)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	r.silent(ctx, r.dial())
	took := time.Since(began)
	assert.True(t, took >= 100*time.Millisecond && ctx.Err() == nil, "the stream ended after %s: %v", took, ctx.Err())
	testenv.Eventually(t, func() bool { return r.streams.Load() == 0 })
}

func TestServer_StreamsOfStrangers_Bounded(t *testing.T) {
	t.Parallel()
	r := start(t, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range streamsMax / connectionStreamsMax {
		conn := r.dial()
		for range connectionStreamsMax {
			_, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, rls.RateLimitService_ShouldRateLimit_FullMethodName)
			require.NoError(t, err)
		}
	}
	testenv.Eventually(t, func() bool { return r.streams.Load() == streamsMax })
	_, err := rls.NewRateLimitServiceClient(r.dial()).ShouldRateLimit(t.Context(), ask(descriptor("tenant=acme")))
	assert.True(t, status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "too many"), err)
	got := testutil.ToFloat64(r.metrics.requests.WithLabelValues(codes.Unavailable.String()))
	assert.True(t, got == 1, "%g refusals counted", got)
	cancel()
	testenv.Eventually(t, func() bool { return r.streams.Load() == 0 })
	_, err = rls.NewRateLimitServiceClient(r.dial()).ShouldRateLimit(t.Context(), ask(descriptor("tenant=acme")))
	assert.True(t, status.Code(err) == codes.Unauthenticated, err)
}

func TestServer_Panic_Internal(t *testing.T) {
	t.Parallel()
	r := start(t, testenv.Patience)
	client, ctx := rls.NewRateLimitServiceClient(r.dial()), metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+testKey, "x-request-id", "the-id")
	for _, req := range []*rls.RateLimitRequest{ask(descriptor("tenant=acme")), ask(descriptor("tenant=acme"), descriptor("tenant=acme"))} {
		_, err := client.ShouldRateLimit(ctx, req) // there is no gate, so the server panics
		assert.True(t, status.Code(err) == codes.Internal && !strings.Contains(err.Error(), "panic"), err)
	}
	testenv.Eventually(t, func() bool {
		log := r.log.String()
		return strings.Count(log, `"level":"ERROR"`) == 2 && strings.Contains(log, `"request_id":"the-id"`) && strings.Contains(log, "goroutine ") && !strings.Contains(log, testKey)
	})
}

func TestServer_Stop_CutsOffSilentStreams(t *testing.T) {
	t.Parallel()
	r := start(t, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	conn := r.dial()
	_, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, rls.RateLimitService_ShouldRateLimit_FullMethodName)
	require.NoError(t, err)
	testenv.Eventually(t, func() bool { return r.streams.Load() == 1 })
	r.Drain()
	got, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	assert.True(t, err == nil && got.GetStatus() == grpc_health_v1.HealthCheckResponse_NOT_SERVING, "%v, %v", got, err)
	assert.Error(t, r.Stop(ctx), "the stream has not ended, and Stop says nothing")
	testenv.Eventually(t, func() bool { return r.streams.Load() == 0 })
}

func TestServer_Trace_ContinuesTheCallers(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	r := start(t, testenv.Patience, func(cfg *Config) {
		cfg.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	})
	const trace = "0af7651916cd43dd8448eb211c80319c"
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	_, err := rls.NewRateLimitServiceClient(r.dial()).ShouldRateLimit(ctx, ask(descriptor("tenant=acme")))
	assert.True(t, status.Code(err) == codes.Unauthenticated, err)
	testenv.Eventually(t, func() bool {
		return len(spans.Ended()) == 1 && strings.Contains(r.log.String(), `"trace_id":"`+trace+`"`)
	})
	if s := spans.Ended()[0]; s.SpanContext().TraceID().String() != trace || s.Name() != "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit" {
		t.Errorf("%s of %s", s.Name(), s.SpanContext().TraceID())
	}
}
