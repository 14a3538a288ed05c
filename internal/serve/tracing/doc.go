// Package tracing exports spans with OpenTelemetry if the environment configures an exporter.
//
// # Terms
//
//   - span of a request: the HTTP handler creates it. It continues the trace of the caller (traceparent).
//   - span of a batch: a lane creates it for a batch with at least one sampled request. It is a child of the span of
//     the first sampled request, and has links to the spans of all sampled requests. The spans of the other sampled
//     requests have a link to the batch. The children of the batch are PostgreSQL statements and Redis commands.
//
// # Invariants
//
//  1. Tracing is off unless OTEL_TRACES_EXPORTER names an exporter, or OTEL_EXPORTER_OTLP_ENDPOINT or
//     OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set. While tracing is off, no span is created, and requests run no code
//     of OpenTelemetry.
//  2. Spans contain no keys and no arguments of statements.
//  3. If the endpoint does not accept spans, at most 2,048 spans wait in memory. Further spans are dropped. No
//     request waits for the export. A stop waits a second for it.
//
// # Clock, concurrency, failure
//
// Spans use the clock of the process. All methods may be called from any goroutine. A span that cannot be exported is
// lost. The error is logged, at most once a minute.
package tracing
