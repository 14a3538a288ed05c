// Package tracing exports spans with OpenTelemetry, if the environment configures it.
//
// # Terms
//
//   - span of a request: created by the HTTP handler; it continues the trace of the caller (traceparent).
//   - span of a batch: created by a lane, for a batch with at least one sampled request. It is a child of the first
//     sampled request, and has links to all sampled requests. The other requests have a link to it. Its children are
//     PostgreSQL statements and Redis commands.
//
// # Invariants
//
//  1. Tracing is off unless OTEL_TRACES_EXPORTER names an exporter, or OTEL_EXPORTER_OTLP_ENDPOINT or
//     OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set. While it is off, no span is created, and no OpenTelemetry code runs
//     for a request.
//  2. Spans contain no keys and no arguments of statements.
//  3. If the exporter does not answer, at most 2,048 spans wait in memory; further spans are dropped. No request
//     waits for the exporter.
//
// # Clock, concurrency, failure
//
// Spans use the clock of the process. All methods may be called from any goroutine. A span that cannot be exported is
// lost; the error is logged at most once a minute.
package tracing
