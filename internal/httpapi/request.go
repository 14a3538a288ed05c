package httpapi

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/forwarded"
	"github.com/quotasvc/quotasvc/internal/httpapi/limitheaders"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
)

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"

	// bodyMax is the largest request body in bytes. A full batch of 1000 debits with the longest ids has a third of
	// this size.
	bodyMax = 1 << 20

	// bufferKeep is the largest buffer in bytes that a request keeps for reuse. Nearly every request is smaller.
	// Without this bound, each pooled request could keep a megabyte after a full batch.
	bufferKeep = 64 << 10

	// buffered is the largest answer for which net/http sets Content-Length itself, without an entry in the map of
	// headers.
	buffered = 2048
)

// request is one request and its answer while handlers work on it. Requests are reused: after the answer, no code may
// keep a request or a part of it.
type request struct {
	echo.Context
	server *Server

	ctx       *deadline // ends with the client or at the deadline
	started   time.Time
	requestID string
	key       *access.Key // the caller's; nil on public routes
	query     query
	doc       body.Document
	in        bytes.Buffer // the request's body
	out       []byte       // the answer

	// A spending request and the verdicts of its limits, kept here for reuse.
	gateRequest gate.Request
	limits      []gate.LimitVerdict

	report history.Source // where the answer came from, if it is a report

	gateway *forwarded.Gateway // determines the form of the answer; nil: a client called directly

	// Facts for the access log.
	tenant string
	code   errcode.Code
	rules  []string // the rules that denied the request
	cause  error
}

// handler serves one operation. Its error is answered as a problem.
type handler func(rc *request) error

// decode reads the body as one JSON object of these members.
func decode[T any](rc *request, into *T, members []body.Member[T]) error {
	if err := rc.readBody(); err != nil {
		return err
	}
	return body.Decode(&rc.doc, rc.in.Bytes(), into, members)
}

// decodeObject reads the body into an object of the catalogue. without names the fields that the path has instead of
// the body.
func (rc *request) decodeObject(into body.Checked, without ...string) error {
	if err := rc.readBody(); err != nil {
		return err
	}
	return rc.doc.JSON(rc.in.Bytes(), into, body.Options{Without: without})
}

func (rc *request) readBody() error {
	r := rc.Request()
	if given := r.Header.Get("Content-Type"); given != typeJSON && given != "" {
		media, parameters, err := mime.ParseMediaType(given)
		charset := parameters["charset"]
		if err != nil || media != typeJSON || charset != "" && !strings.EqualFold(charset, "utf-8") {
			return body.Refuse("Content-Type", "must be application/json, in UTF-8")
		}
	}
	if r.ContentLength > bodyMax {
		return errTooLarge()
	}
	rc.in.Reset()
	if r.ContentLength > 0 && r.ContentLength <= bufferKeep { // bufferKeep bounds memory for a body that never comes
		rc.in.Grow(int(r.ContentLength))
		text := rc.in.AvailableBuffer()[:r.ContentLength]
		if _, err := io.ReadFull(r.Body, text); err != nil {
			return body.Refuse("body", "could not be read completely")
		}
		_, _ = rc.in.Write(text) // copies onto itself; a Buffer returns no error
		return nil
	}
	if n, err := rc.in.ReadFrom(io.LimitReader(r.Body, bodyMax+1)); err != nil {
		return body.Refuse("body", "could not be read completely")
	} else if n > bodyMax {
		return errTooLarge()
	}
	return nil
}

func errTooLarge() error { return body.Refuse("body", "must be at most %d bytes", bodyMax) }

// parameter returns a path parameter, unescaped. Echo returns the segment of the path that it matched. That segment
// is escaped if the URL has a RawPath, and plain otherwise.
func (rc *request) parameter(name string) string {
	value := rc.Param(name)
	if rc.Request().URL.RawPath != "" {
		if plain, err := url.PathUnescape(value); err == nil {
			return plain
		}
	}
	return value
}

// idParameter returns a path parameter that must be an id.
func (rc *request) idParameter(name string) (string, error) {
	value := rc.parameter(name)
	if !bound.ID(value) {
		return "", body.Refuse(name, bound.MustBeID)
	}
	return value, nil
}

// tenantParameter returns the tenant in the path, if the key may reach it.
func (rc *request) tenantParameter() (string, error) {
	tenant, err := rc.idParameter("tenant")
	if err != nil {
		return "", err
	}
	return tenant, rc.ofTenant(tenant)
}

// idempotencyKey returns the Idempotency-Key, or the empty string if there is none.
func (rc *request) idempotencyKey() (string, error) {
	values := rc.Request().Header[headerIdempotencyKey]
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || !bound.Key(values[0]):
		return "", body.Refuse(headerIdempotencyKey, bound.MustBeKey)
	default:
		return values[0], nil
	}
}

// operationKey returns the Idempotency-Key. A dry run may omit it and gets dryRunKey.
func (rc *request) operationKey(dryRun bool) (string, error) {
	key, err := rc.idempotencyKey()
	switch {
	case err != nil || key != "":
		return key, err
	case dryRun:
		return dryRunKey, nil
	default:
		return "", &errcode.Error{Code: codeIdempotencyKeyMissing}
	}
}

// reporting returns the context of a report. With it, the answer has the replication lag of the replica that was
// read.
func (rc *request) reporting() context.Context { return history.Observe(rc.ctx, &rc.report) }

// sendBytes answers with encoded text.
func (rc *request) sendBytes(status int, contentType string, text []byte) error {
	rc.out = text
	h := rc.Response().Header()
	set(h, echo.HeaderContentType, contentType)
	if behind := rc.report.Behind(); behind != "" {
		set(h, headerReportLag, behind)
	}
	if len(text) >= buffered {
		set(h, echo.HeaderContentLength, strconv.Itoa(len(text)))
	}
	rc.Response().WriteHeader(status)
	if _, err := rc.Response().Write(text); err != nil {
		// The client is gone. The status has been sent, so the error goes to the access log only.
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// send answers with a value of a generated type, as JSON.
func (rc *request) send(status int, value any) error {
	out := bytes.NewBuffer(rc.out[:0])
	if err := json.MarshalWrite(out, value, json.Deterministic(true)); err != nil { // sorted maps give stable bytes
		return fmt.Errorf("encode %T: %w", value, err)
	}
	return rc.sendBytes(status, typeJSON, out.Bytes())
}

// sendProblem answers with err.
func (rc *request) sendProblem(err error) {
	p := rc.server.problemOf(err)
	rc.code, rc.rules, rc.cause = p.code, p.violated, err
	h := rc.Response().Header()
	var tight minRemaining
	if p.denial != nil {
		tight.offerDenial(p.denial)
		tight.write(h)
	}
	if p.limits == nil {
		p.limits = rc.limits
	}
	wait := rc.server.limits.Write(h, p.limits)
	limitheaders.WriteMode(h, p.degraded)
	if p.retryAfter > 0 {
		set(h, headerRetryAfter, rc.server.limits.RetryAfter(max(p.retryAfter, wait), p.limits))
	}
	if p.replayed() {
		set(h, headerReplayed, "true")
	}
	if p.kind.status == http.StatusUnauthorized {
		set(h, "WWW-Authenticate", `Bearer realm="quotasvc"`)
	}
	if _, stranger := errors.AsType[*access.Refusal](err); stranger {
		set(h, "Connection", "close") // unknown callers must not hold connections
	}
	status, text := p.kind.status, appendProblem(rc.out[:0], &p, rc.requestID)
	if rc.gateway != nil {
		status = rc.gateway.Refuse(h, status, text)
	}
	if err := rc.sendBytes(status, typeProblem, text); err != nil {
		rc.cause = fmt.Errorf("%w (answering %w)", err, rc.cause)
	}
}

// reset clears the request. It keeps the buffers unless they are large.
func (rc *request) reset() {
	if rc.in.Cap() > bufferKeep {
		rc.in = bytes.Buffer{}
	}
	if cap(rc.out) > bufferKeep {
		rc.out = nil
	}
	rc.Context, rc.ctx, rc.gateway, rc.key = nil, nil, nil, nil
	rc.gateRequest, rc.limits, rc.report = gate.Request{}, nil, history.Source{}
	rc.query.values, rc.query.faults = nil, nil
	rc.requestID, rc.tenant, rc.code, rc.rules, rc.cause = "", "", "", nil, nil
}
