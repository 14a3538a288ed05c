package pgpool

import (
	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"
)

// NewTracer returns a tracer that creates spans of statements and batches. The spans contain neither the statements'
// arguments nor the parameters of connections.
func NewTracer(traces trace.TracerProvider) pgx.QueryTracer {
	return otelpgx.NewTracer(otelpgx.WithTracerProvider(traces), otelpgx.WithDisableSQLStatementInAttributes(),
		otelpgx.WithDisableConnectionDetailsInAttributes())
}
