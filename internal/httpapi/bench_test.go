package httpapi

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// sink is a response writer that keeps only its map of headers. net/http would create this map for each request, in
// the server and in the baseline.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(status int)      { s.status = status }

// drive sends the same request to h as often as the benchmark requires.
func drive(b *testing.B, h http.Handler, path, body string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Content-Type": {typeJSON}, headerIdempotencyKey: {"0123456789abcdef"}}
	r.RemoteAddr, r.ContentLength = "192.0.2.1:1234", int64(len(body))
	reader := bytes.NewReader(nil)
	r.Body = io.NopCloser(reader)
	w := &sink{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset([]byte(body))
		clear(w.header)
		h.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatalf("status %d", w.status)
		}
	}
}

// BenchmarkBareEcho is the baseline. Its handler uses echo's binder and JSON encoder, and does not check the request.
func BenchmarkBareEcho(b *testing.B) {
	type in struct {
		Tenant string `json:"tenant"`
		Items  []struct {
			Meter  string `json:"meter"`
			Amount int64  `json:"amount"`
		} `json:"items"`
	}
	e := echo.New()
	e.POST("/v1/debits", func(c echo.Context) error {
		var body in
		if err := c.Bind(&body); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, client.DebitAnswer{
			OperationID: "0123456789abcdef", Tenant: body.Tenant, AsOf: time.Date(2026, 5, 1, 0, 0, 0, 123456000, time.UTC), Items: []client.DebitedItem{{
				Meter: body.Items[0].Meter, Requested: body.Items[0].Amount, Charged: body.Items[0].Amount, Remaining: 1,
				Draws: []client.Draw{{Grant: "g", Source: "allowance", Meter: body.Items[0].Meter, Amount: body.Items[0].Amount}},
			}},
		})
	})
	drive(b, e, "/v1/debits", demandOf("acme", "api_calls", 1))
}

// newBenchServer returns a server without backends that discards its access log.
func newBenchServer(b *testing.B, h func(s *Server) handler) http.Handler {
	b.Helper()
	s, err := New(nil, nil, nil, catalog.New(new(catalog.Store), catalog.Config{}), Config{
		Keys: bootstrapOnly(b), Registry: prometheus.NewRegistry(),
		Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), //nolint:sloglint // formatting the line is part of what is measured
	})
	if err != nil {
		b.Fatal(err)
	}
	s.echo.POST("/bench/spend", s.guard(route{handler: h(s)}))
	return s.Handler()
}

// BenchmarkDebit measures POST /v1/debits without the decision: the server reads, checks, answers, counts and logs
// the request.
func BenchmarkDebit(b *testing.B) {
	at := time.Date(2026, 5, 1, 0, 0, 0, 123456000, time.UTC)
	result := &ledger.DebitResult{OperationID: "0123456789abcdef", Tenant: "acme", AsOf: at, Items: []ledger.ItemResult{{
		Meter: "api_calls", Requested: 1, Charged: 1, Position: ledger.Position{Remaining: 1, Limit: 2, ResetAt: at.Add(time.Hour)},
		Draws: []ledger.Draw{{Grant: "g", Source: "allowance", Meter: "api_calls", Amount: 1}},
	}}}
	h := newBenchServer(b, func(s *Server) handler {
		return func(rc *request) error {
			if err := rc.readSpending(s.bodies.debit); err != nil {
				return err
			}
			return rc.sendDebit(result)
		}
	})
	drive(b, h, "/bench/spend", demandOf("acme", "api_calls", 1))
}

// BenchmarkCheck measures POST /v1/check with three limits, without the decision.
func BenchmarkCheck(b *testing.B) {
	at := time.Date(2026, 5, 1, 0, 0, 0, 123456000, time.UTC)
	verdict := func(rule string) gate.LimitVerdict {
		return gate.LimitVerdict{Rule: rule, Allowed: true, Remaining: 9, Limit: 10, Policy: `"` + rule + `";q=10;w=1`, Next: 100 * time.Millisecond}
	}
	answer := &gate.Check{
		Allowed: true, Source: gate.SourceCache, AsOf: at, Limits: []gate.LimitVerdict{verdict("a"), verdict("b"), verdict("c")},
		Items: []gate.CheckItem{{Meter: "api_calls", Required: 1, Remaining: 5, Limit: 10, MaxAllowedNow: 5, ResetAt: at.Add(time.Hour)}},
	}
	h := newBenchServer(b, func(s *Server) handler {
		return func(rc *request) error {
			if err := decode(rc, &rc.gateRequest, s.bodies.check); err != nil {
				return err
			}
			return rc.sendCheck(answer)
		}
	})
	drive(b, h, "/bench/spend", demandOf("acme", "api_calls", 1))
}

// BenchmarkCheckBatch measures 64 checks in one request, without the decisions.
func BenchmarkCheckBatch(b *testing.B) {
	const size = 64
	at := time.Date(2026, 5, 1, 0, 0, 0, 123456000, time.UTC)
	verdict := func(rule string) gate.LimitVerdict {
		return gate.LimitVerdict{Rule: rule, Kind: "token_bucket", Allowed: true, Remaining: 9, Limit: 10}
	}
	outcomes := slices.Repeat([]gate.CheckOutcome{{Check: gate.Check{
		Allowed: true, Source: gate.SourceCache, AsOf: at, Limits: []gate.LimitVerdict{verdict("a"), verdict("b"), verdict("c")},
		Items: []gate.CheckItem{{Meter: "api_calls", Required: 1, Remaining: 5, Limit: 10, MaxAllowedNow: 5, ResetAt: at.Add(time.Hour)}},
	}}}, size)
	h := newBenchServer(b, func(s *Server) handler {
		return func(rc *request) error {
			var checks []gate.Request
			if err := decode(rc, &checks, s.bodies.checkBatch); err != nil {
				return err
			}
			return rc.sendChecks(outcomes)
		}
	})
	drive(b, h, "/bench/spend", `{"checks":[`+strings.Repeat(demandOf("acme", "api_calls", 1)+",", size-1)+demandOf("acme", "api_calls", 1)+`]}`)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/check")
}

// BenchmarkDecodeDebit measures how long it takes to decode the body of a debit.
func BenchmarkDecodeDebit(b *testing.B) {
	var d body.Document
	members, text := newBodies().debit, []byte(demandOf("acme", "api_calls", 1))
	var r gate.Request
	b.ReportAllocs()
	for b.Loop() {
		r = gate.Request{}
		if err := body.Decode(&d, text, &r, members); err != nil {
			b.Fatal(err)
		}
	}
}
