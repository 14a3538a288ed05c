package httpapi

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

const (
	// requestIDMax is the maximum length in bytes of an X-Request-Id that a client sends.
	requestIDMax = 128

	// statusClientGone is the status of a request whose client left before the answer. As in nginx, it is only for
	// logs and metrics, and is never sent. It distinguishes clients that gave up from an outage.
	statusClientGone = 499
)

// serve is the middleware of every request, with or without a matching route. It creates the request object, answers
// errors of the handlers as problems, recovers from panics, and measures and logs the request.
func (s *Server) serve(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		rc := s.pool.Get().(*request)
		rc.Context, rc.server, rc.started = c, s, s.now()
		rc.requestID = requestID(c.Request().Header)
		set(c.Response().Header(), headerRequestID, rc.requestID)
		ctx := newDeadline(c.Request().Context(), rc.started.Add(s.cfg.RequestTimeout))
		defer ctx.end()
		rc.ctx = ctx
		defer s.metrics.inFlight.Begin(rc.started).End()

		whole := s.answer(rc, next)
		s.observe(rc, s.now().Sub(rc.started))
		if whole {
			rc.reset()
			s.pool.Put(rc)
		}
		return nil
	}
}

// answer runs the handlers. After a panic it returns false. The request must then not be reused, because other code
// may still use it.
func (s *Server) answer(rc *request, next echo.HandlerFunc) (whole bool) {
	defer func() {
		if whole {
			return
		}
		cause := recover()
		if cause == http.ErrAbortHandler { //nolint:errorlint // net/http, too, compares the value of the panic
			panic(cause)
		}
		rc.fail(fmt.Errorf("panic: %v\n%s", cause, debug.Stack()))
	}()
	if err := next(rc); err != nil {
		rc.fail(err)
	}
	return true
}

// fail answers with the problem for err. If an answer was already sent, it only stores err for the access log.
func (rc *request) fail(err error) {
	if rc.Response().Committed {
		rc.cause = err
		return
	}
	if e, ok := errors.AsType[*echo.HTTPError](err); ok && e.Code == http.StatusNotFound {
		r := rc.Request()
		rc.closeUnknown()
		err = &errcode.Error{Code: errcode.NotFound, Detail: "no such endpoint: " + r.Method + " " + body.Clip(r.URL.Path)}
	}
	rc.sendProblem(err)
}

// observe counts the request, and writes its line of the access log.
func (s *Server) observe(rc *request, took time.Duration) {
	r, status := rc.Request(), rc.Response().Status
	if status == http.StatusServiceUnavailable && errors.Is(r.Context().Err(), context.Canceled) {
		status = statusClientGone
	}
	traceID := s.endSpan(rc, status)
	s.metrics.observe(rc.Path(), r.Method, status, took, traceID)
	level := slog.LevelInfo
	switch status {
	case http.StatusInternalServerError:
		level = slog.LevelError
	case http.StatusServiceUnavailable:
		level = slog.LevelWarn
	}
	if !s.log.Enabled(r.Context(), level) {
		return
	}
	attrs := make([]slog.Attr, 0, 13)
	attrs = append(attrs,
		slog.String("request_id", rc.requestID),
		slog.String("method", r.Method),
		slog.String("route", rc.Path()),
		slog.Int("status", status),
		slog.Int64("duration_us", took.Microseconds()),
		slog.Int64("bytes", rc.Response().Size),
		slog.String("remote_addr", r.RemoteAddr),
	)
	if traceID != "" {
		attrs = append(attrs, slog.String("trace_id", traceID))
	}
	if rc.key != nil {
		attrs = append(attrs, slog.String("key", rc.key.ID))
	}
	if rc.tenant != "" {
		attrs = append(attrs, slog.String("tenant", rc.tenant))
	}
	if rc.code != "" {
		attrs = append(attrs, slog.String("code", string(rc.code)))
	}
	if len(rc.rules) > 0 {
		attrs = append(attrs, slog.String("violated", strings.Join(rc.rules, ",")))
	}
	if rc.cause != nil && status != statusClientGone {
		attrs = append(attrs, slog.String("error", rc.cause.Error()))
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// endSpan gives the request's span its name. It returns the trace id if the span is sampled, and otherwise the empty
// string.
func (s *Server) endSpan(rc *request, status int) string {
	if !s.cfg.Traced {
		return ""
	}
	span := trace.SpanFromContext(rc.Request().Context())
	if !span.SpanContext().IsSampled() {
		return ""
	}
	route := cmp.Or(rc.Path(), routeNone)
	span.SetName(rc.Request().Method + " " + route)
	span.SetAttributes(attribute.String("http.route", route), attribute.String("quotasvc.request_id", rc.requestID), attribute.String("quotasvc.tenant", rc.tenant))
	if rc.code != "" {
		span.SetAttributes(attribute.String("quotasvc.code", string(rc.code)))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, string(rc.code))
	}
	return span.SpanContext().TraceID().String()
}

// requestID returns the client's X-Request-Id, or a random id if it has none.
func requestID(h http.Header) string {
	if given := givenRequestID(h); given != "" {
		return given
	}
	return randomID()
}

// givenRequestID returns the client's X-Request-Id if it can be sent in a header and logged. Otherwise it returns "".
func givenRequestID(h http.Header) string {
	if given := h[headerRequestID]; len(given) == 1 && bound.ASCII(given[0], '!', 1, requestIDMax) {
		return given[0]
	}
	return ""
}

// randomID returns 128 random bits in hexadecimal.
func randomID() string {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	var text [2 * len(id)]byte
	hex.Encode(text[:], id[:])
	return string(text[:])
}
