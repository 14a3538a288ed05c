package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxAnswer is the maximum size of an answer in bytes. An answer about a hold has less than a kilobyte per grant.
const maxAnswer = 1 << 20

// operation is one change at the service. All attempts have the same key and body, so that the change takes effect
// once.
type operation struct {
	path, key string
	body      []byte
	do        action // the action, for an operation on a hold
	amount    int64  // units that it charges; 0: it charges no units

	tries int           // number of attempts so far
	first time.Duration // start of the first attempt
	wait  time.Duration // the wait after the last attempt, if that failed
	retry time.Duration // when the next attempt may start
}

func newOperation(path, key string, body any) *operation {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings and integers can always be encoded
	}
	return &operation{path: path, key: key, body: raw}
}

// opAnswer is an answer of the service to an operation. The service's clock is not compared with this process's
// clock: only differences between two times of the service are used.
type opAnswer struct {
	status int
	after  time.Duration // Retry-After; 0: no such header
	end    time.Duration // until then, by this process's clock, the hold certainly exists
	reset  time.Duration // the end of the period, approximately; 0: not known

	Code      string        `json:"code"`
	Detail    string        `json:"detail"`
	Available int64         `json:"available"`
	Items     []opAnswerRow `json:"items"`
	ExpiresAt time.Time     `json:"expires_at"`
	AsOf      time.Time     `json:"as_of"`
}

type opAnswerRow struct {
	Charged   int64 `json:"charged"`
	Shortfall int64 `json:"shortfall"`
	Remaining int64 `json:"remaining"`
}

// item returns the row of the operation's only item.
func (a *opAnswer) item() opAnswerRow {
	if len(a.Items) == 0 {
		return opAnswerRow{}
	}
	return a.Items[0]
}

// exhausted reports whether the service refused the operation because the balance has too few units.
func (a *opAnswer) exhausted() bool {
	return a.Code == "quota_exceeded" || a.Code == "credits_exhausted"
}

// ended reports whether the hold no longer exists or is no longer active.
func (a *opAnswer) ended() bool { return a.Code == "hold_not_active" || a.Code == "hold_not_found" }

// refused reports whether the service refused the operation and changed nothing.
func (a *opAnswer) refused() bool { return a.status >= http.StatusMultipleChoices }

// final reports whether this answer decides the operation. Three kinds of refusals do not. A refusal without a code
// comes from a proxy. After a 429 that is not about missing units, a retry can succeed. After a 5xx, the outcome is
// unknown.
func (a *opAnswer) final() bool {
	return !a.refused() || a.exhausted() ||
		a.Code != "" && a.status < http.StatusInternalServerError && a.status != http.StatusTooManyRequests
}

// send makes one attempt. An error means that the outcome is unknown or that a later attempt may succeed. op.wait is
// then the wait before the next attempt.
func (l *LocalUnits) send(op *operation) (*opAnswer, error) {
	began := l.now()
	l.mu.Lock()
	if op.tries == 0 {
		op.first = began
	}
	op.tries++
	l.stats.Requests++
	l.mu.Unlock()
	a, header, err := l.exchange(op)
	if err == nil && a.refused() {
		l.options.OnError(a.problem(op.path))
	}
	if err == nil && !a.final() {
		err = a.problem(op.path)
	} else if err != nil {
		l.options.OnError(err)
	}
	if err != nil {
		l.postpone(op, RetryAfter(header))
		return nil, err
	}
	// If the service sends a stored answer again, the hold may be as old as the first attempt.
	if header.Get("Idempotent-Replayed") == "true" {
		began = op.first
	}
	a.after = RetryAfter(header)
	a.end = began + a.ExpiresAt.Sub(a.AsOf)
	if seconds, err := strconv.ParseInt(header.Get("X-Quota-Reset"), 10, 32); err == nil {
		a.reset = began + time.Duration(seconds)*time.Second
	}
	return a, nil
}

// postpone sets the time of op's next attempt. The argument `after` is the service's Retry-After.
func (l *LocalUnits) postpone(op *operation, after time.Duration) {
	wait := l.options.Backoff.Wait(op.tries, after)
	l.mu.Lock()
	defer l.mu.Unlock()
	op.wait, op.retry = wait, later(l.now(), wait)
}

// exchange sends the request of an operation once, and reads the answer.
func (l *LocalUnits) exchange(op *operation) (*opAnswer, http.Header, error) {
	ctx, cancel := context.WithTimeout(l.attempt, l.options.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.options.URL+op.path, bytes.NewReader(op.body))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", op.path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(HeaderIdempotencyKey, op.key)
	if l.options.Key != "" {
		req.Header.Set("Authorization", "Bearer "+l.options.Key)
	}
	resp, err := l.options.Client.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", op.path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: read the answer: %w", op.path, err)
	}
	a := &opAnswer{status: resp.StatusCode}
	if err := json.Unmarshal(raw, a); err != nil && a.status < http.StatusMultipleChoices {
		return nil, nil, fmt.Errorf("%s: answer %d: %w", op.path, a.status, err)
	}
	return a, resp.Header, nil
}

func (a *opAnswer) problem(path string) error {
	return fmt.Errorf("%s: %d %s: %s", path, a.status, a.Code, a.Detail)
}
