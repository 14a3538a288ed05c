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
	// this size in bytes.
	bodyMax = 1 << 20

	// bufferKeep is the maximum size in bytes of a buffer that is kept for the next request. Nearly all requests are
	// smaller. Without this maximum, each pooled request could keep a megabyte after a full batch.
	bufferKeep = 64 << 10

	// buffered is the maximum size in bytes of an answer for which net/http sets Content-Length itself. For a longer
	// answer, the header must be set.
	buffered = 2048
)

// request is one HTTP request and its answer, while handlers work on them. Requests are reused. Therefore no code may
// keep a request or a part of it after the answer.
type request struct {
	echo.Context
	server *Server

	ctx       *deadline // ends when the client leaves or at the deadline
	started   time.Time
	requestID string
	key       *access.Key // the caller's key; nil on public routes
	query     query
	doc       body.Document
	in        bytes.Buffer // the request's body
	out       []byte       // the answer

	// The request to consume, debit or check, and the verdicts of its limits. They are here so that their memory is
	// reused.
	gateRequest gate.Request
	limits      []gate.LimitVerdict

	report history.Source // the database from which a report was read

	gateway *forwarded.Gateway // determines the form of the answer; nil: the request comes directly from a client

	// Data for the request's line of the access log.
	tenant string // if the path has a tenant, handlers read it here
	code   errcode.Code
	rules  []string // names of the limits that denied the request
	cause  error
}

// handler serves one operation. If it returns an error, the answer is the problem for this error.
type handler func(rc *request) error

// decode decodes the body, which must be a JSON object with these members.
func decode[T any](rc *request, into *T, members []body.Member[T]) error {
	if err := rc.readBody(); err != nil {
		return err
	}
	return body.Decode(&rc.doc, rc.in.Bytes(), into, members)
}

// decodeObject decodes the body into an object of the catalogue. The argument `without` names the fields that are in
// the path instead of the body.
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
	if r.ContentLength > 0 && r.ContentLength <= bufferKeep { // a client may announce a long body and never send it
		rc.in.Grow(int(r.ContentLength))
		text := rc.in.AvailableBuffer()[:r.ContentLength]
		if _, err := io.ReadFull(r.Body, text); err != nil {
			return body.Refuse("body", "could not be read completely")
		}
		_, _ = rc.in.Write(text) // copies the text onto itself; a Buffer returns no error
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

// parameter returns a path parameter, unescaped. The value that Echo returns is escaped only if the URL has a RawPath.
func (rc *request) parameter(name string) string {
	value := rc.Param(name)
	if rc.Request().URL.RawPath != "" {
		if plain, err := url.PathUnescape(value); err == nil {
			return plain
		}
	}
	return value
}

// idParameter returns a path parameter. It returns an error unless the parameter is a valid id.
func (rc *request) idParameter(name string) (string, error) {
	value := rc.parameter(name)
	switch name {
	case "tenant", "subject", "grant_id", "hold_id":
		if !bound.Name(value) {
			return "", body.Refuse(name, "%s", bound.MustBeName)
		}
	default:
		if !bound.ID(value) {
			return "", body.Refuse(name, "%s", bound.MustBeID)
		}
	}
	return value, nil
}

// checkIDs refuses a request unless each of these path parameters is a valid id. If the tenant is among them, it
// becomes rc.tenant, and a key that is bound to another tenant is refused.
func (rc *request) checkIDs(names []string) error {
	for _, name := range names {
		value, err := rc.idParameter(name)
		if err != nil {
			return err
		}
		if name == "tenant" {
			if err := rc.ofTenant(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// idempotencyKey returns the value of the Idempotency-Key header, or the empty string if there is no such header.
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

// operationKey returns the Idempotency-Key. For a dry run without this header, it returns dryRunKey.
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

// readOperation reads the body and the idempotency key of an operation, and refuses a key that is bound to another
// tenant. `tenant` and `key` point to fields of req. The tenant is in the body, or the caller has set it.
func readOperation[R any](
	rc *request, req *withDryRun[R], members []body.Member[withDryRun[R]], tenant, key *string,
) error {
	err := decode(rc, req, members)
	if err != nil {
		return err
	}
	if err = rc.ofTenant(*tenant); err != nil {
		return err
	}
	*key, err = rc.operationKey(req.dryRun)
	return err
}

// reporting returns the context with which a report must be read. It records from which database the report was read,
// so that sendBytes can send the replication lag of a replica.
func (rc *request) reporting() context.Context { return history.Observe(rc.ctx, &rc.report) }

// sendBytes answers with text that is already encoded.
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
		// The client has left. The status was already sent, so only the access log shows the error.
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// send answers with the JSON of a value, which has a type of the contract.
func (rc *request) send(status int, value any) error {
	out := bytes.NewBuffer(rc.out[:0])
	if err := json.MarshalWrite(out, value, json.Deterministic(true)); err != nil { // equal maps give equal bytes
		return fmt.Errorf("encode %T: %w", value, err)
	}
	return rc.sendBytes(status, typeJSON, out.Bytes())
}

// sendObject answers with an object that was read or changed, or returns err if this failed. translate returns the
// object in the contract's type.
func sendObject[T, A any](rc *request, status int, object *T, err error, translate func(*T) A) error {
	if err != nil {
		return err
	}
	return rc.send(status, translate(object))
}

// sendNoContent answers with 204 if a change was made, and returns err otherwise.
func (rc *request) sendNoContent(err error) error {
	if err != nil {
		return err
	}
	return rc.NoContent(http.StatusNoContent)
}

// sendProblem answers with the problem for err.
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
	rc.markReplayed(p.replayed())
	if p.kind.status == http.StatusUnauthorized {
		set(h, "WWW-Authenticate", `Bearer realm="quotasvc"`)
	}
	if _, stranger := errors.AsType[*access.Refusal](err); stranger {
		set(h, "Connection", "close") // callers without a valid key must not hold connections
	}
	status, text := p.kind.status, appendProblem(rc.out[:0], &p, rc.requestID)
	if rc.gateway != nil {
		status = rc.gateway.Refuse(h, status, text)
	}
	if err := rc.sendBytes(status, typeProblem, text); err != nil {
		rc.cause = fmt.Errorf("%w (answering %w)", err, rc.cause)
	}
}

// reset clears the request for reuse. It keeps buffers that are not larger than bufferKeep.
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
