package tracing

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// stopTimeout bounds the export of the last spans. A collector that hangs must not delay a stop.
const stopTimeout = time.Second

// scope is the instrumentation scope of the service's spans.
const scope = "github.com/quotasvc/quotasvc"

// Tracing creates and exports spans. A nil Tracing creates no spans.
type Tracing struct {
	provider   *sdktrace.TracerProvider
	propagator propagation.TextMapPropagator
}

// Wanted reports whether the environment configures tracing.
func Wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch os.Getenv("OTEL_TRACES_EXPORTER") {
	case "none":
		return false
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	default:
		return true
	}
}

// Start returns a Tracing that is configured by the OTEL_* variables, or nil if they do not configure tracing. It
// supports the variables of the OpenTelemetry specification for exporter, endpoint, protocol, headers, sampler and
// attributes. It fails for an unknown exporter. It does not check whether the endpoint answers. The exporter console
// writes to out.
func Start(ctx context.Context, version string, log *slog.Logger, out io.Writer) (*Tracing, error) {
	if !Wanted() {
		return nil, nil
	}
	exporter, err := newExporter(ctx, out)
	if err != nil {
		return nil, fmt.Errorf("tracing by OTEL_* variables: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "quotasvc"), attribute.String("service.version", version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithHost()) // later ones win: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
	if err != nil {
		return nil, fmt.Errorf("tracing by OTEL_* variables: %w", err)
	}
	otel.SetErrorHandler(newQuiet(log))
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	return New(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), nil
}

// newExporter returns the exporter that OTEL_TRACES_EXPORTER names: otlp (over HTTP) or console. There is no exporter
// for gRPC, because every collector accepts OTLP over HTTP.
func newExporter(ctx context.Context, out io.Writer) (sdktrace.SpanExporter, error) {
	switch name := os.Getenv("OTEL_TRACES_EXPORTER"); name {
	case "", "otlp":
		for _, setting := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
			if protocol := os.Getenv(setting); protocol != "" && protocol != "http/protobuf" {
				return nil, fmt.Errorf("%s is %q; only http/protobuf is supported", setting, protocol)
			}
		}
		return otlptracehttp.New(ctx)
	case "console":
		return stdouttrace.New(stdouttrace.WithWriter(out))
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q; must be otlp, console or none", name)
	}
}

// New returns a Tracing with these options of the SDK.
func New(options ...sdktrace.TracerProviderOption) *Tracing {
	return &Tracing{
		provider:   sdktrace.NewTracerProvider(options...),
		propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	}
}

// Stop exports the spans that are still in memory, and ends the export. If that takes longer than stopTimeout, the
// spans are lost. The error handler of OpenTelemetry gets the reason.
func (t *Tracing) Stop(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		otel.Handle(fmt.Errorf("export the last spans: %w", err))
	}
}

// Tracer returns the tracer for the lanes. It returns nil if t is nil.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.provider.Tracer(scope)
}

// Provider returns the provider for the libraries of PostgreSQL and Redis. It returns nil if t is nil.
func (t *Tracing) Provider() trace.TracerProvider {
	if t == nil {
		return nil
	}
	return t.provider
}

// Handler returns a handler that creates a span for each request and calls the handler `next`. If t is nil, it
// returns `next`.
func (t *Tracing) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return otelhttp.NewHandler(next, "request", otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(t.propagator))
}

// quietFor is the pause after a logged error of the exporter. Errors during the pause are not logged.
const quietFor = time.Minute

// quiet logs errors of the exporter, at most one in quietFor.
type quiet struct {
	log *slog.Logger

	mu    sync.Mutex
	until time.Time
}

func newQuiet(log *slog.Logger) *quiet { return &quiet{log: log} }

// Handle implements otel.ErrorHandler.
func (q *quiet) Handle(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); now.After(q.until) {
		q.until = now.Add(quietFor)
		q.log.Warn("spans cannot be exported; this line is logged at most once a minute", "error", err)
	}
}
