// Package tracing exports spans by OpenTelemetry, if the environment asks for it.
//
// # Terms
//
//   - span of a request: made by the HTTP handler; it continues the trace of the caller (traceparent).
//   - span of a batch: made by a lane, for a batch in which a request is sampled. It is a child of the first of them and has links to all. The
//     others have a link to it. Statements of PostgreSQL and commands of Redis are its children.
//
// # Invariants
//
//  1. Tracing is off unless OTEL_TRACES_EXPORTER names an exporter, or OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.
//     While it is off no span is made and no code of OpenTelemetry runs for a request.
//  2. Spans have neither keys nor arguments of statements.
//  3. An exporter that does not answer costs memory for at most 2,048 spans; further spans are dropped. No request waits for it.
//
// # Clock, concurrency, failure
//
// The process's clock. All methods may be called from any goroutine. A span that cannot be exported is lost; the log says so once a minute.
package tracing
