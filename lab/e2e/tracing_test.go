package e2e

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// collected is a collector of traces (OTLP over HTTP) with the spans that it has received.
type collected struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
	text  strings.Builder // all data that was received, as text
}

func newCollector(t *testing.T) *collected {
	t.Helper()
	c := &collected{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var batch collectorpb.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(raw, &batch) != nil {
			t.Errorf("what is exported cannot be read: %v", err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.text.Write(raw)
		for _, resource := range batch.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// of returns the received spans of a trace whose names begin with prefix.
func (c *collected) of(traceID, prefix string) []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*tracepb.Span
	for _, s := range c.spans {
		if hex.EncodeToString(s.GetTraceId()) == traceID && strings.HasPrefix(s.GetName(), prefix) {
			found = append(found, s)
		}
	}
	return found
}

// TestTracing_RequestsBatchesStatements: the caller's trace continues through the request, the lane's batch,
// PostgreSQL and Redis. The access line and the exemplar contain the trace's id. No API key is exported.
func TestTracing_RequestsBatchesStatements(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	s := serve(t, append(backends(t), "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "QUOTASVC_LOG_LEVEL=info"))
	s.setUp(t, 100)
	const traceID = "0af7651916cd43dd8448eb211c80319c"
	for _, path := range []string{"/v1/debits", "/v1/check"} {
		got, _ := s.post(t, "POST", path, encode(t, debitOf("acme", "api_calls", 1)),
			"Idempotency-Key", "traced", "traceparent", "00-"+traceID+"-b7ad6b7169203331-01")
		require.Equal(t, http.StatusOK, got.status, "%s", path)
	}
	testenv.Eventually(t, func() bool {
		return len(c.of(traceID, "POST /v1/debits")) == 1 && len(c.of(traceID, "POST /v1/check")) == 1 && len(c.of(traceID, "batch ledger-")) == 1
	}, "all spans are exported")
	batch, request := c.of(traceID, "batch ledger-")[0], c.of(traceID, "POST /v1/debits")[0]
	assert.True(t, string(batch.GetParentSpanId()) == string(request.GetSpanId()) && len(batch.GetLinks()) == 1,
		"the batch %v is not linked with its request %v", batch, request)
	statements := 0
	c.mu.Lock()
	for _, span := range c.spans {
		if string(span.GetTraceId()) == string(batch.GetTraceId()) && string(span.GetParentSpanId()) == string(batch.GetSpanId()) {
			statements++
		}
	}
	assert.NotZero(t, statements, "the batch has no statements")
	for _, secret := range []string{testKey, "SELECT tenant_id"} {
		assert.NotContains(t, c.text.String(), secret, "%s is exported", secret)
	}
	c.mu.Unlock()
	metrics := fetch(t, s.http, http.MethodGet, s.ops+"/metrics", "", "Accept",
		"application/openmetrics-text; version=1.0.0")
	assert.Contains(t, string(metrics.body), `# {trace_id="`+traceID+`"}`, "no exemplar has the trace")
	assert.Contains(t, s.stderr.String(), `"trace_id":"`+traceID+`"`, "no access line has the trace")
}

func TestTracing_UnknownExporter_Refused(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{"OTEL_TRACES_EXPORTER=jaeger": "must be otlp, console or none", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc": "only http/protobuf"} {
		env := append(backends(t), variable, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1")
		status, _, stderr := tool(t, env, serveFree...)
		assert.True(t, status != 0 && strings.Contains(stderr, want), "%s: ended with %d: %s", variable, status, stderr)
	}
}
