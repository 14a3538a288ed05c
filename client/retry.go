package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// HeaderIdempotencyKey is the header that identifies an operation. All requests with the same key take effect
	// once.
	HeaderIdempotencyKey = "Idempotency-Key"

	// defaultAttempts is enough for the restart of an instance or a failover of its database, with the default Backoff.
	defaultAttempts = 5

	// defaultMaxWait is longer than the waits for limits per second, and far shorter than the wait for the next month.
	defaultMaxWait = 30 * time.Second

	// Ten requests add the budget of one retry, and the budget is at most ten retries. So a service with a long
	// failure gets only a tenth more requests, and after a short failure all requests are retried.
	retryCost = 10
	maxBudget = 10 * retryCost

	// maxDiscard bounds the bytes read from a response that is not returned. Error responses are about 1 % of this
	// size. If the rest is longer, the connection is closed.
	maxDiscard = 64 << 10
)

// Retrier sends requests, and retries failed requests that may succeed later. The zero value is ready to use. A
// Retrier must not be copied after first use.
type Retrier struct {
	// Client sends the requests; nil means http.DefaultClient. Its Timeout should be set: it bounds an attempt.
	Client *http.Client

	// Backoff computes the waits.
	Backoff Backoff

	// Attempts is the maximum number of attempts per request. 0 means 5.
	Attempts int

	// MaxWait is the longest wait. 0 means 30 s. If a response demands a longer wait, Do returns this response at
	// once: nobody should wait for a quota that is used up until next month.
	MaxWait time.Duration

	// Sleep waits for d. If ctx ends first, it returns ctx's error. nil means a timer. It is meant for tests.
	Sleep func(ctx context.Context, d time.Duration) error

	mu    sync.Mutex
	spent int // used part of the retry budget: 0 to maxBudget
}

// Do sends a request. It sends it again while the status is 429, 502, 503 or 504, or while there is no response. It returns the
// result of the last attempt. The caller closes the response body.
//
// Do adds an Idempotency-Key to a POST that has no key. Callers that retry after a restart of their process must set
// and store their own key. Do sends a request once if it cannot be repeated: a PATCH without key, or a body without
// GetBody.
func (r *Retrier) Do(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.Method == http.MethodPost && req.Header.Get(HeaderIdempotencyKey) == "" {
		req.Header.Set(HeaderIdempotencyKey, NewKey())
	}
	r.addBudget()
	for attempt := 1; ; attempt++ {
		response, err := r.client().Do(req)
		wait, retry := r.shouldRetry(req, response, err, attempt)
		if !retry {
			return response, err
		}
		if response != nil {
			discard(response.Body)
		}
		if cause := r.sleep(req.Context(), wait); cause != nil {
			return nil, fmt.Errorf("wait before attempt %d: %w", attempt+1, cause)
		}
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, fmt.Errorf("repeat the body: %w", err)
			}
			req.Body = body
		}
	}
}

// shouldRetry reports whether req must be sent again, and returns the wait before this retry. It takes the retry from
// the budget.
func (r *Retrier) shouldRetry(req *http.Request, response *http.Response, err error, attempt int) (wait time.Duration, retry bool) {
	attempts, maxWait := r.Attempts, r.MaxWait
	if attempts <= 0 {
		attempts = defaultAttempts
	}
	if maxWait <= 0 {
		maxWait = defaultMaxWait
	}
	if err == nil && !retryable(response.StatusCode) || attempt >= attempts || !repeatable(req) || req.Context().Err() != nil {
		return 0, false
	}
	var asked time.Duration
	if err == nil {
		asked = RetryAfter(response.Header)
	}
	if asked > maxWait {
		return 0, false
	}
	wait = max(asked, min(r.Backoff.Wait(attempt, asked), maxWait))
	if deadline, ok := req.Context().Deadline(); ok && time.Until(deadline) <= wait {
		return 0, false
	}
	return wait, r.takeBudget()
}

// retryable reports whether a request with this status may succeed later. 500 is not retryable: the same request would fail
// in the same way.
func retryable(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// repeatable reports whether req can be sent twice and take effect once.
func repeatable(req *http.Request) bool {
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodDelete:
		return true
	default:
		return req.Header.Get(HeaderIdempotencyKey) != ""
	}
}

// addBudget adds the budget that one request earns: a tenth of a retry.
func (r *Retrier) addBudget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent = max(r.spent-1, 0)
}

// takeBudget takes one retry from the budget. It returns false if the budget is used up.
func (r *Retrier) takeBudget() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spent+retryCost > maxBudget {
		return false
	}
	r.spent += retryCost
	return true
}

func (r *Retrier) client() *http.Client {
	if r.Client != nil {
		return r.Client
	}
	return http.DefaultClient
}

func (r *Retrier) sleep(ctx context.Context, d time.Duration) error {
	if r.Sleep != nil {
		return r.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// discard reads the rest of a body, up to maxDiscard, and closes it.
func discard(body io.ReadCloser) {
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxDiscard))
	_ = body.Close()
}

// NewKey returns a new Idempotency-Key: 128 random bits.
func NewKey() string { return rand.Text() }
