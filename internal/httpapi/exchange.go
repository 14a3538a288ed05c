package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"

	// BodyMax is the largest request body in bytes. A full batch of 1000 debits with an id of the greatest length in each
	// place is a third of it.
	BodyMax = 1 << 20

	// bufferKeep is the largest buffer an exchange keeps for the next request. Nearly every request is smaller; a few
	// full batches must not pin a megabyte each.
	bufferKeep = 64 << 10

	// buffered is the size of the answers whose Content-Length net/http finds out by itself. A check then has eight headers,
	// which is what a map holds before it needs a table: the ninth would cost 0.7 us.
	buffered = 2048
)

// exchange is one request and its answer on their way through the handlers. Exchanges are reused: nothing that outlives the
// request may keep one, nor what it holds.
type exchange struct {
	echo.Context
	server *Server

	ctx       context.Context // ends with the client or the request's deadline
	requestID string
	query     query
	doc       body.Document
	in        bytes.Buffer // the request's body
	out       []byte       // the answer

	// What a request for units is decoded into, and what the limits said of it: here to be reused.
	request gate.Request
	limits  []gate.LimitVerdict

	gateway *gateway // in whose form to answer; nil: a client's own request

	// What the access line says besides the request itself.
	tenant string
	code   ledger.Code
	rules  []string // that denied
	cause  error
}

// handler serves one operation. What it returns is answered as a problem.
type handler func(x *exchange) error

// decode reads the request's body as one JSON object of these members.
func decode[T any](x *exchange, into *T, members []body.Member[T]) error {
	if err := x.readBody(); err != nil {
		return err
	}
	return body.Decode(&x.doc, x.in.Bytes(), into, members)
}

// decodeObject reads the request's body into an object of the catalogue. without names the fields that the path has.
func (x *exchange) decodeObject(into body.Checked, without ...string) error {
	if err := x.readBody(); err != nil {
		return err
	}
	return x.doc.JSON(x.in.Bytes(), into, body.Options{Without: without})
}

func (x *exchange) readBody() error {
	r := x.Request()
	if given := r.Header.Get("Content-Type"); given != typeJSON && given != "" {
		media, parameters, err := mime.ParseMediaType(given)
		charset := parameters["charset"]
		if err != nil || media != typeJSON || charset != "" && !strings.EqualFold(charset, "utf-8") {
			return body.Refuse("Content-Type", "must be application/json in UTF-8")
		}
	}
	if r.ContentLength > BodyMax {
		return errTooLarge()
	}
	x.in.Reset()
	if r.ContentLength > 0 && r.ContentLength <= bufferKeep { // one read, for which nobody can reserve much without sending it
		x.in.Grow(int(r.ContentLength))
		text := x.in.AvailableBuffer()[:r.ContentLength]
		if _, err := io.ReadFull(r.Body, text); err != nil {
			return body.Refuse("body", "could not be read to its end")
		}
		_, _ = x.in.Write(text) // which is there already; a buffer returns no error
		return nil
	}
	if n, err := x.in.ReadFrom(io.LimitReader(r.Body, BodyMax+1)); err != nil {
		return body.Refuse("body", "could not be read to its end")
	} else if n > BodyMax {
		return errTooLarge()
	}
	return nil
}

func errTooLarge() error { return body.Refuse("body", "must be at most %d bytes", BodyMax) }

// parameter returns a path parameter as the client meant it. Echo hands out the segment as it stands in the path it matched:
// escaped if the URL has a RawPath, and plain otherwise.
func (x *exchange) parameter(name string) string {
	value := x.Param(name)
	if x.Request().URL.RawPath != "" {
		if plain, err := url.PathUnescape(value); err == nil {
			return plain
		}
	}
	return value
}

// idParameter returns a path parameter that must be an id.
func (x *exchange) idParameter(name string) (string, error) {
	value := x.parameter(name)
	if !bound.ID(value) {
		return "", body.Refuse(name, bound.MustBeID)
	}
	return value, nil
}

// tenantParameter returns the path's tenant and notes it for the access line.
func (x *exchange) tenantParameter() (string, error) {
	tenant, err := x.idParameter("tenant")
	x.tenant = tenant // "" if it is no id
	return tenant, err
}

// idempotencyKey returns the request's key, or "" if there is none.
func (x *exchange) idempotencyKey() (string, error) {
	values := x.Request().Header[headerIdempotencyKey]
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || !bound.Key(values[0]):
		return "", body.Refuse(headerIdempotencyKey, bound.MustBeKey)
	default:
		return values[0], nil
	}
}

// operationKey returns the Idempotency-Key, which only a dry run may do without: dryRunKey stands in for it there.
func (x *exchange) operationKey(dryRun bool) (string, error) {
	key, err := x.idempotencyKey()
	switch {
	case err != nil || key != "":
		return key, err
	case dryRun:
		return dryRunKey, nil
	default:
		return "", &refusal{code: codeIdempotencyKeyMissing}
	}
}

// sendBytes answers with JSON that is encoded already.
func (x *exchange) sendBytes(status int, contentType string, text []byte) error {
	x.out = text
	h := x.Response().Header()
	set(h, echo.HeaderContentType, contentType)
	if len(text) >= buffered {
		set(h, echo.HeaderContentLength, strconv.Itoa(len(text)))
	}
	x.Response().WriteHeader(status)
	if _, err := x.Response().Write(text); err != nil {
		// The client is gone. The answer is committed, so this is for the access line only.
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// send answers with a value of a generated type.
func (x *exchange) send(status int, value any) error {
	out := bytes.NewBuffer(x.out[:0])
	if err := json.MarshalWrite(out, value, json.Deterministic(true)); err != nil { // maps in order: the same answer is the same bytes
		return fmt.Errorf("encode %T: %w", value, err)
	}
	return x.sendBytes(status, typeJSON, out.Bytes())
}

// sendProblem answers with err.
func (x *exchange) sendProblem(err error) {
	p := x.server.problemOf(err)
	x.code, x.rules, x.cause = p.code, p.violated, err
	h := x.Response().Header()
	var tight tightest
	if p.denial != nil {
		tight.offerDenial(p.denial, p.asOf)
		tight.write(h)
	}
	if p.limits == nil {
		p.limits = x.limits
	}
	wait := x.server.writeLimits(h, p.limits)
	writeMode(h, p.degraded)
	if p.retryAfter > 0 {
		set(h, headerRetryAfter, x.server.retryAfter(max(p.retryAfter, wait), p.limits))
	}
	if p.replayed {
		set(h, headerReplayed, "true")
	}
	if p.kind.status == http.StatusUnauthorized {
		set(h, "WWW-Authenticate", `Bearer realm="quotasvc"`)
	}
	status, text := p.kind.status, appendProblem(x.out[:0], &p, x.requestID)
	if x.gateway != nil {
		status = x.gateway.refuse(h, status, text)
	}
	if err := x.sendBytes(status, typeProblem, text); err != nil {
		x.cause = fmt.Errorf("%w (answering %w)", err, x.cause)
	}
}

// reset forgets the request, and keeps the buffers unless they have grown large.
func (x *exchange) reset() {
	if x.in.Cap() > bufferKeep {
		x.in = bytes.Buffer{}
	}
	if cap(x.out) > bufferKeep {
		x.out = nil
	}
	x.Context, x.ctx, x.gateway = nil, nil, nil
	x.query, x.request, x.limits = query{}, gate.Request{}, nil
	x.requestID, x.tenant, x.code, x.rules, x.cause = "", "", "", nil, nil
}
