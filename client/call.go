package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// maxReply is the maximum size of an answer in bytes. A page with the largest items has a few megabytes.
const maxReply = 64 << 20

// reply is an answer with a status below 300.
type reply struct {
	status   int
	header   http.Header
	body     []byte
	key      string
	attempts int
}

// send sends a request, and retries it until an attempt is final, or until the time, the attempts or the retry budget
// are used up. All attempts have the same key and the same body.
func (a *API) send(ctx context.Context, r *call, list []Option) (*reply, error) {
	o, err := a.optionsOf(list)
	if err != nil {
		return nil, err
	}
	target, err := r.target()
	if err != nil {
		return nil, err
	}
	var body []byte
	if r.body != nil {
		if body, err = json.Marshal(r.body); err != nil {
			return nil, fmt.Errorf("quotasvc: %s: encode the body: %w", r.operation, err)
		}
	}
	switch {
	case r.key && o.key == "":
		o.key = NewKey()
	case !r.key && o.key != "":
		return nil, fmt.Errorf("quotasvc: %s takes no Idempotency-Key", r.operation)
	}
	got, failed := a.attempts(ctx, r, &o, target, body)
	if o.meta != nil {
		*o.meta = metaOf(got, failed)
	}
	if failed != nil {
		return nil, failed
	}
	return got, nil
}

func metaOf(got *reply, failed *Error) Meta {
	if failed != nil {
		return Meta{Status: failed.Status, Header: failed.Header, RequestID: failed.RequestID, Attempts: failed.Attempts, IdempotencyKey: failed.IdempotencyKey}
	}
	return Meta{
		Status: got.status, Header: got.header, RequestID: got.header.Get("X-Request-Id"), Attempts: got.attempts, IdempotencyKey: got.key,
		Replayed: got.header.Get("Idempotent-Replayed") == "true",
	}
}

// attempts sends a request until an attempt is final: it succeeds, it must not be retried, or the context ends.
func (a *API) attempts(outer context.Context, r *call, o *callOptions, target string, body []byte) (*reply, *Error) {
	ctx, cancel := context.WithTimeout(outer, o.deadline)
	defer cancel()
	a.retrier.addBudget()
	unknown := false // whether an earlier attempt may have taken effect
	for attempt := 1; ; attempt++ {
		got, err := a.attempt(ctx, r, o, target, body)
		if err == nil {
			got.attempts = attempt
			return got, nil
		}
		err.Operation, err.Attempts, err.IdempotencyKey = r.operation, attempt, o.key
		if unknown && (err.Status == 0 || saysNothing(err.Code)) {
			err.OutcomeUnknown = true
		}
		err.OutcomeUnknown = err.OutcomeUnknown && r.changes()
		unknown = err.OutcomeUnknown
		if cause := outer.Err(); cause != nil {
			err.Code, err.Detail, err.cause = CodeCanceled, "the call's context ended", cause
			return nil, err
		}
		wait, retry := a.wait(ctx, r, o, err, attempt)
		if !retry {
			return nil, err
		}
		if hook := a.options.OnRetry; hook != nil {
			hook(RetryEvent{r.operation, attempt, wait, err})
		}
		if a.retrier.sleep(ctx, wait) != nil && outer.Err() != nil {
			err.Code, err.Detail, err.cause = CodeCanceled, "the call's context ended", outer.Err()
			return nil, err
		}
	}
}

// changes reports whether the operation can change something. A read has no outcome that could be unknown.
func (r *call) changes() bool { return r.method != http.MethodGet }

// saysNothing reports whether an answer with this code says nothing about an earlier attempt. The earlier attempt may
// have taken effect, although its answer was lost.
func saysNothing(code ProblemCode) bool {
	switch code {
	case ProblemCodeRateLimited, ProblemCodeQueueFull, ProblemCodeUnavailable, ProblemCodeOutcomeUnknown, CodeNotTheService:
		return true
	default:
		return false
	}
}

// wait returns the wait before a retry, and takes the retry from the retry budget. It returns false if the request
// must not be sent again.
func (a *API) wait(ctx context.Context, r *call, o *callOptions, err *Error, attempt int) (time.Duration, bool) {
	passes := err.Status == 0 || retryable(err.Status) && (err.Status != http.StatusTooManyRequests || !o.keepDenials)
	if !passes || attempt >= a.options.Attempts || !r.key && !r.safe || err.RetryAfter > a.options.MaxWait {
		return 0, false
	}
	wait := max(err.RetryAfter, min(a.options.Backoff.Wait(attempt, err.RetryAfter), a.options.MaxWait))
	if ends, ok := ctx.Deadline(); ok && time.Until(ends) <= wait {
		return 0, false
	}
	return wait, a.retrier.takeBudget()
}

// attempt sends the request of a call once, and returns the answer or the error.
func (a *API) attempt(ctx context.Context, r *call, o *callOptions, target string, body []byte) (*reply, *Error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, a.options.URL+target, bytes.NewReader(body))
	if err != nil {
		return nil, &Error{Code: CodeNoAnswer, Detail: err.Error(), cause: err}
	}
	req.Header.Set("Authorization", "Bearer "+a.options.Key)
	req.Header.Set("User-Agent", "quotasvc-go/"+version)
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if o.key != "" {
		req.Header.Set(HeaderIdempotencyKey, o.key)
	}
	if o.ifMatch != "" {
		req.Header.Set("If-Match", o.ifMatch)
	}
	resp, err := a.http.Do(req)
	var text []byte
	if err == nil {
		defer resp.Body.Close()
		text, err = io.ReadAll(io.LimitReader(resp.Body, maxReply))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, &Error{Code: CodeTimeout, Detail: fmt.Sprintf("no answer within %s", o.timeout), OutcomeUnknown: !neverSent(err), cause: err}
	case err != nil:
		return nil, &Error{Code: CodeNoAnswer, Detail: err.Error(), OutcomeUnknown: !neverSent(err), cause: err}
	case resp.StatusCode >= http.StatusMultipleChoices || resp.StatusCode < http.StatusOK:
		return nil, refusal(resp, text)
	}
	return &reply{status: resp.StatusCode, header: resp.Header, body: text, key: o.key}, nil
}

// neverSent reports whether the request was never sent, because no connection could be opened.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
