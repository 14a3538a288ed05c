package envoyrls

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

// overLimit is the value of the metric's label for answers that refuse a request. All other values are names of gRPC
// codes.
const overLimit = "OverLimit"

// warnEvery is the minimum time between two lines of the log about bad requests with the same field. A client may cause
// such requests as often as it likes.
const warnEvery = time.Minute

// metrics has the metrics of the requests.
type metrics struct {
	requests  *prometheus.CounterVec
	duration  prometheus.Histogram
	inFlight  *metric.InProgress
	bad       *prometheus.CounterVec
	forgotten prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: metric.CounterVec(reg, "quotasvc_envoy_rls_requests_total",
			"Answered requests of Envoy's rate limit filter, by code: OK, OverLimit, or the gRPC code of an error.",
			"code"),
		duration: metric.Histogram(reg, "quotasvc_envoy_rls_request_duration_seconds",
			"Time from the message of a request to its answer.",
			prometheus.ExponentialBuckets(250e-6, 2, 17)), // the same buckets as for requests of the REST API
		inFlight: metric.NewInProgress(reg, "quotasvc_envoy_rls", "Requests of Envoy's rate limit filter"),
		bad: metric.CounterVec(reg, "quotasvc_envoy_bad_descriptors_total",
			"Requests of Envoy's rate limit filter that could not be read, by the part at fault.", "field"),
		forgotten: metric.Counter(reg, "quotasvc_envoy_looks_forgotten_total",
			"Descriptors whose looks were forgotten to make room for others. Their reports are charged like requests."),
	}
	for _, field := range fields {
		m.bad.WithLabelValues(field)
	}
	for _, code := range []string{codes.OK.String(), overLimit} {
		m.requests.WithLabelValues(code)
	}
	return m
}

func (m *metrics) count(code string) { m.requests.WithLabelValues(code).Inc() }

// begin starts the span of a request. The span belongs to the caller's trace if the caller sent one.
func (c *call) begin(ctx context.Context, md metadata.MD) context.Context {
	tracer := c.server.cfg.Tracer
	if tracer == nil {
		return ctx
	}
	ctx = propagation.TraceContext{}.Extract(ctx, carrier(md))
	ctx, c.span = tracer.Start(ctx, rls.RateLimitService_ShouldRateLimit_FullMethodName[1:], trace.WithSpanKind(trace.SpanKindServer))
	return ctx
}

// carrier lets OpenTelemetry's propagators read gRPC metadata.
type carrier metadata.MD

// Get returns the first value of a key.
func (c carrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set does nothing, because the metadata is only read.
func (carrier) Set(_, _ string) {}

// Keys returns nil, because no propagator in use calls Keys.
func (carrier) Keys() []string { return nil }

// observe counts the request, ends its span and writes its line of the access log.
func (c *call) observe(ctx context.Context, out *rls.RateLimitResponse, code codes.Code) {
	took, label := time.Since(c.started), code.String()
	if out.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT {
		label = overLimit
	}
	m := c.server.metrics
	m.count(label)
	m.duration.Observe(took.Seconds())
	traceID := c.end(label, code)
	level := slog.LevelInfo
	switch code {
	case codes.Internal:
		level = slog.LevelError
	case codes.Unavailable:
		level = slog.LevelWarn
	default:
	}
	log := c.server.cfg.Log
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 11)
	attrs = append(attrs,
		slog.String("request_id", c.requestID),
		slog.String("method", "gRPC"),
		slog.String("route", rls.RateLimitService_ShouldRateLimit_FullMethodName),
		slog.String("grpc_code", label),
		slog.Int64("duration_us", took.Microseconds()),
		slog.String("remote_addr", c.peer.String()),
	)
	if traceID != "" {
		attrs = append(attrs, slog.String("trace_id", traceID))
	}
	if c.key != nil {
		attrs = append(attrs, slog.String("key", c.key.ID))
	}
	if c.tenant != "" {
		attrs = append(attrs, slog.String("tenant", c.tenant))
	}
	if c.refused != "" {
		attrs = append(attrs, slog.String("code", string(c.refused)))
	}
	if len(c.violated) > 0 {
		attrs = append(attrs, slog.String("violated", strings.Join(c.violated, ",")))
	}
	if c.cause != nil {
		attrs = append(attrs, slog.String("error", c.cause.Error()))
	}
	log.LogAttrs(ctx, level, "request", attrs...)
}

// observeBad counts a bad request. It writes a line of the log, at most one in warnEvery for each field.
func (c *call) observeBad(ctx context.Context, e *badRequest) {
	s := c.server
	s.metrics.bad.WithLabelValues(e.field).Inc()
	if s.warned.due(e.field, c.started) {
		s.cfg.Log.WarnContext(ctx, "a request of Envoy's rate limit filter cannot be read",
			"field", e.field, "error", e, "request_id", c.requestID, "key", c.key.ID, "client_may_choose", e.chosen)
	}
}

// warned has the time of the last line of the log for each field of bad requests.
type warned struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// due reports whether a line for the field is due at now. If so, the next one is due after warnEvery.
func (w *warned) due(field string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.last[field]; ok && now.Sub(last) < warnEvery {
		return false
	}
	w.last[field] = now
	return true
}

// end ends the request's span. It returns the trace id if the span is sampled, and otherwise the empty string.
func (c *call) end(label string, code codes.Code) string {
	if c.span == nil {
		return ""
	}
	defer c.span.End()
	if !c.span.SpanContext().IsSampled() {
		return ""
	}
	c.span.SetAttributes(attribute.String("quotasvc.request_id", c.requestID), attribute.String("quotasvc.tenant", c.tenant),
		attribute.String("quotasvc.code", label))
	if code == codes.Internal || code == codes.Unavailable {
		c.span.SetStatus(otelcodes.Error, label)
	}
	return c.span.SpanContext().TraceID().String()
}
