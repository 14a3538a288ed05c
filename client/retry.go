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
	// HeaderIdempotencyKey is the header that identifies an operation. Several requests with the same key take effect
	// once.
	HeaderIdempotencyKey = "Idempotency-Key"

	// defaultAttempts is the default of Attempts. With the default Backoff, it is enough for the restart of an
	// instance or a failover of its database.
	defaultAttempts = 5

	// defaultMaxWait is the default of MaxWait. It is longer than the waits for limits per second, and far shorter
	// than the wait for the next month.
	defaultMaxWait = 30 * time.Second

	// Each request adds a tenth of a retry to the budget, which is at most ten retries. So a service that fails for a
	// long time gets only a tenth more requests, and after a short failure all requests are retried.
	retryCost = 10
	maxBudget = 10 * retryCost

	// maxDiscard is the maximum number of bytes that are read from a response that is not returned. Error responses
	// have about 1 % of this size. If a response is longer, its connection is closed.
	maxDiscard = 64 << 10
)

// Retrier sends requests, and retries failed requests that may succeed later. The zero value is ready to use. A
// Retrier must not be copied after its first use.
type Retrier struct {
	// Client sends the requests; nil means http.DefaultClient. Set its Timeout, which bounds one attempt.
	Client *http.Client

	// Backoff computes the waits before retries.
	Backoff Backoff

	// Attempts is the maximum number of attempts of one request. 0 means 5.
	Attempts int

	// MaxWait is the longest wait before a retry. 0 means 30 s. If a response demands a longer wait, Do returns the
	// response at once. For example, no caller should wait for a quota that is used up until next month.
	MaxWait time.Duration

	// Sleep waits for d. If ctx ends first, it returns ctx's error. nil means that a timer is used. Sleep is meant
	// for tests.
	Sleep func(ctx context.Context, d time.Duration) error

	mu    sync.Mutex
	spent int // the used part of the retry budget, from 0 to maxBudget
}

// Do sends a request. If the status is 429, 502, 503 or 504, or if there is no response, it sends the request again.
// It returns the result of the last attempt. The caller must close the response body.
//
// Do adds an Idempotency-Key to a POST that has no key. If your program repeats a request after a restart, it must
// set and store its own key. Some requests cannot be repeated: a PATCH without a key, and a body without GetBody. Do
// sends such a request only once.
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

// shouldRetry reports whether req must be sent again, and returns the wait before that. It takes the retry from the
// retry budget.
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

// retryable reports whether the same request may succeed later after this status. After 500 it may not: the same
// request would fail again in the same way.
func retryable(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// repeatable reports whether req can be sent twice and still take effect only once.
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

// addBudget adds a tenth of a retry to the retry budget. It is called once for each request.
func (r *Retrier) addBudget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent = max(r.spent-1, 0)
}

// takeBudget takes one retry from the retry budget. It returns false if the budget is used up.
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

// discard reads at most maxDiscard bytes of a body and closes it.
func discard(body io.ReadCloser) {
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxDiscard))
	_ = body.Close()
}

// NewKey returns a new random Idempotency-Key with at least 128 random bits.
func NewKey() string { return rand.Text() }
