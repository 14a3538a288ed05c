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
	// HeaderIdempotencyKey names an operation. However often a request is sent with one key, it is done once.
	HeaderIdempotencyKey = "Idempotency-Key"

	// defaultAttempts bridges the restart of an instance and a failover of its database, with the default Backoff.
	defaultAttempts = 5

	// defaultPatience is above what rates per second or minute ask for, and far below what a used-up month does.
	defaultPatience = 30 * time.Second

	// A request earns a tenth of a retry, and the reserve holds ten: a service that is in trouble gets a tenth more requests
	// than usual, and one that hiccups gets all of its retries.
	retryCost  = 10
	reserveMax = 10 * retryCost

	// discardMax bounds what is read of an answer that is not returned. A problem is a hundredth of it; a connection with more
	// on it is closed.
	discardMax = 64 << 10
)

// Retrier sends requests, and sends those again that may succeed then. The zero value is good. It must not be copied once it
// has been used.
type Retrier struct {
	// Client sends; nil is http.DefaultClient. Give it a Timeout: it bounds an attempt.
	Client *http.Client

	// Backoff says how long to wait.
	Backoff Backoff

	// Attempts is how often a request is sent at most; 0 is 5.
	Attempts int

	// Patience is the longest wait; 0 is 30 s. An answer that asks for more is returned at once: a quota that is used up until
	// next month is not a matter of retrying.
	Patience time.Duration

	// Sleep waits for d or until ctx ends, and returns ctx's error then; nil is a timer. For tests.
	Sleep func(ctx context.Context, d time.Duration) error

	mu    sync.Mutex
	spent int // of the reserve: 0 to reserveMax
}

// Do sends a request and, while the answer is 429, 502, 503 or 504 or there is none, sends it again. It returns what the last
// attempt brought; the body of an answer is the caller's to close.
//
// A POST without an Idempotency-Key is given one, which a caller that wants to go on after this process has ended must choose
// itself. Requests that cannot be repeated are sent once: those with a PATCH and without key, or with a body that GetBody
// cannot bring again.
func (r *Retrier) Do(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.Method == http.MethodPost && req.Header.Get(HeaderIdempotencyKey) == "" {
		req.Header.Set(HeaderIdempotencyKey, NewKey())
	}
	r.earn()
	for attempt := 1; ; attempt++ {
		answer, err := r.client().Do(req)
		wait, again := r.again(req, answer, err, attempt)
		if !again {
			return answer, err
		}
		if answer != nil {
			discard(answer.Body)
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

// again says whether to send req again, and after which wait.
func (r *Retrier) again(req *http.Request, answer *http.Response, err error, attempt int) (wait time.Duration, again bool) {
	attempts, patience := r.Attempts, r.Patience
	if attempts <= 0 {
		attempts = defaultAttempts
	}
	if patience <= 0 {
		patience = defaultPatience
	}
	if err == nil && !passing(answer.StatusCode) || attempt >= attempts || !repeatable(req) || req.Context().Err() != nil {
		return 0, false
	}
	var asked time.Duration
	if err == nil {
		asked = RetryAfter(answer.Header)
	}
	if asked > patience {
		return 0, false
	}
	wait = max(asked, min(r.Backoff.Wait(attempt, asked), patience))
	if deadline, ok := req.Context().Deadline(); ok && time.Until(deadline) <= wait {
		return 0, false
	}
	return wait, r.spend()
}

// passing says whether a status is one that passes by waiting. 500 is not: the same request meets the same error.
func passing(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// repeatable says whether req can be sent twice and be done once.
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

// earn adds a request's part of a retry to the reserve.
func (r *Retrier) earn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spent = max(r.spent-1, 0)
}

// spend takes a retry from the reserve, if there is one.
func (r *Retrier) spend() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spent+retryCost > reserveMax {
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

// discard reads what is left of a body, within bounds, and closes it.
func discard(body io.ReadCloser) {
	_, _ = io.Copy(io.Discard, io.LimitReader(body, discardMax))
	_ = body.Close()
}

// NewKey returns a new Idempotency-Key: 128 random bits.
func NewKey() string { return rand.Text() }
