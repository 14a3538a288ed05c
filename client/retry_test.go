package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is a transport that answers each attempt with a given status. The status 0 means a broken connection. It
// records the attempts.
type script struct {
	statuses []int // status per attempt; later attempts get 200
	after    []int // Retry-After per attempt in seconds; 0: no such header

	mu     sync.Mutex
	sent   []string // method, key and body of each attempt
	open   int      // number of response bodies that are not closed
	waits  []time.Duration
	onWait func()
}

var errBroken = errors.New("broken connection")

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	attempt := len(s.sent)
	s.sent = append(s.sent, fmt.Sprintf("%s %s %s", r.Method, r.Header.Get(HeaderIdempotencyKey), body))
	status := http.StatusOK
	if attempt < len(s.statuses) {
		status = s.statuses[attempt]
	}
	if status == 0 {
		return nil, errBroken
	}
	answer := &http.Response{StatusCode: status, Header: http.Header{}, Request: r}
	if attempt < len(s.after) && s.after[attempt] > 0 {
		answer.Header.Set("Retry-After", fmt.Sprint(s.after[attempt]))
	}
	s.open++
	answer.Body = &scripted{Reader: strings.NewReader(strings.Repeat("x", 100)), of: s}
	return answer, nil
}

type scripted struct {
	io.Reader
	of   *script
	once sync.Once
}

func (b *scripted) Close() error {
	b.once.Do(func() {
		b.of.mu.Lock()
		defer b.of.mu.Unlock()
		b.of.open--
	})
	return nil
}

func (s *script) retrier() *Retrier {
	return &Retrier{Client: &http.Client{Transport: s}, Sleep: func(ctx context.Context, d time.Duration) error {
		s.mu.Lock()
		s.waits = append(s.waits, d)
		s.mu.Unlock()
		if s.onWait != nil {
			s.onWait()
		}
		return ctx.Err()
	}}
}

func request(t testing.TB, method, body string, headers ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://quotasvc.example/v1/debits", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// TestRetrier_RepeatsUnchanged_NotBeforeRetryAfter draws random statuses. Do sends the same request with the same key
// again, at most Attempts times. It never retries before Retry-After, and it returns the last result.
func TestRetrier_RepeatsUnchanged_NotBeforeRetryAfter(t *testing.T) {
	t.Parallel()
	statuses := []int{0, 200, 201, 400, 402, 403, 404, 409, 422, 429, 500, 502, 503, 504}
	always(t, func(d *drawn) {
		s := &script{}
		for range 8 {
			s.after = append(s.after, int(d.between(0, 60)))
		}
		for range d.between(1, 8) {
			s.statuses = append(s.statuses, statuses[d.random.IntN(len(statuses))])
		}
		retrier := s.retrier()
		retrier.Attempts = int(d.between(0, 8))
		attempts := retrier.Attempts
		if attempts == 0 {
			attempts = defaultAttempts
		}
		answer, err := retrier.Do(request(t, http.MethodPost, `{"n":1}`))
		if answer != nil {
			answer.Body.Close()
		}
		sent := len(s.sent)
		if sent > attempts || len(s.waits) != sent-1 || s.open != 0 {
			t.Fatalf("%d of %d attempts, %d waits, %d bodies are open", sent, attempts, len(s.waits), s.open)
		}
		if key := strings.Fields(s.sent[0])[1]; len(key) < 20 || len(slices.Compact(slices.Clone(s.sent))) != 1 {
			t.Errorf("sent were %q", s.sent)
		}
		for i, wait := range s.waits {
			if asked := time.Duration(s.after[i]) * time.Second; s.statuses[i] != 0 && wait < asked || wait > defaultMaxWait {
				t.Errorf("retry %d waits %s, Retry-After was %s", i+1, wait, asked)
			}
			if s.statuses[i] != 0 && !retryable(s.statuses[i]) {
				t.Errorf("status %d was retried", s.statuses[i])
			}
		}
		last := http.StatusOK
		if sent <= len(s.statuses) {
			last = s.statuses[sent-1]
		}
		if (err != nil) != (last == 0) || err != nil && !errors.Is(err, errBroken) || err == nil && answer.StatusCode != last {
			t.Errorf("got %v, %v; the last answer was %d", answer, err, last)
		}
		tooLong := last != 0 && sent <= len(s.after) && time.Duration(s.after[sent-1])*time.Second > defaultMaxWait
		if (last == 0 || retryable(last)) && sent < attempts && !tooLong {
			t.Errorf("gave up with %d after %d of %d attempts", last, sent, attempts)
		}
	})
}

func TestRetrier_NotRepeatable_IsSentOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what     string
		req      *http.Request
		repeated bool
	}{
		{"a read", request(t, http.MethodGet, ""), true},
		{"a put", request(t, http.MethodPut, "{}"), true},
		{"a delete", request(t, http.MethodDelete, ""), true},
		{"a post with a key", request(t, http.MethodPost, "{}", HeaderIdempotencyKey, "mine"), true},
		{"a post without", request(t, http.MethodPost, "{}"), true},
		{"a patch", request(t, http.MethodPatch, "{}"), false},
		{"a patch with a key", request(t, http.MethodPatch, "{}", HeaderIdempotencyKey, "mine"), true},
		{"a stream", func() *http.Request {
			req := request(t, http.MethodPut, "{}")
			req.GetBody = nil
			return req
		}(), false},
	} {
		s := &script{statuses: []int{503}}
		answer, err := s.retrier().Do(c.req)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if (len(s.sent) > 1) != c.repeated {
			t.Errorf("%s was sent %d times", c.what, len(s.sent))
		}
		if key := c.req.Header.Get(HeaderIdempotencyKey); key != "" && !strings.Contains(s.sent[0], " mine ") {
			t.Errorf("%s was sent as %q", c.what, s.sent[0])
		}
	}
}

func TestRetrier_LeavesTheCallersRequestUnchanged(t *testing.T) {
	t.Parallel()
	s := &script{statuses: []int{503, 503}}
	req := request(t, http.MethodPost, "{}")
	answer, err := s.retrier().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if len(req.Header) != 0 {
		t.Errorf("headers: %v", req.Header)
	}
}

func TestRetrier_RetryAfterAboveMaxWait_ReturnsAtOnce(t *testing.T) {
	t.Parallel()
	s := &script{statuses: []int{429}, after: []int{86400 * 20}}
	answer, err := s.retrier().Do(request(t, http.MethodPost, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusTooManyRequests || len(s.sent) != 1 || len(body) != 100 || err != nil {
		t.Errorf("got %d after %d attempts with %d bytes, %v", answer.StatusCode, len(s.sent), len(body), err)
	}
}

// TestRetrier_RetryAfterBeyondBounds_NeverRetriesEarly: the longest wait is not shortened by the random time that is
// added to it.
func TestRetrier_RetryAfterBeyondBounds_NeverRetriesEarly(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1 << 31, 6_324_480_000, math.MaxInt64} {
		s := &script{statuses: []int{429, 429}, after: []int{after, after}}
		r := s.retrier()
		answer, err := r.Do(request(t, http.MethodPost, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if len(s.sent) != 1 {
			t.Errorf("Retry-After %d: %d requests", after, len(s.sent))
		}
		r.MaxWait = math.MaxInt64
		if answer, err = r.Do(request(t, http.MethodPost, "{}")); err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if least := time.Duration(min(after, math.MaxInt64/int(time.Second))) * time.Second; len(s.waits) != 1 || s.waits[0] < least {
			t.Errorf("Retry-After %d: waits %v", after, s.waits)
		}
	}
}

func TestRetrier_WaitBeyondDeadline_ReturnsAtOnce(t *testing.T) {
	t.Parallel()
	s := &script{statuses: []int{503}, after: []int{20}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	answer, err := s.retrier().Do(request(t, http.MethodPost, "{}").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable || len(s.waits) != 0 {
		t.Errorf("got %d after waits %v", answer.StatusCode, s.waits)
	}
}

func TestRetrier_Cancelled_StopsWaiting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := &script{statuses: []int{503, 503}}
	s.onWait = cancel
	answer, err := s.retrier().Do(request(t, http.MethodPost, "{}").WithContext(ctx)) //nolint:bodyclose // there is no body
	if answer != nil || !errors.Is(err, context.Canceled) || len(s.sent) != 1 || s.open != 0 {
		t.Errorf("%v, %v after %d attempts, %d bodies open", answer, err, len(s.sent), s.open)
	}
	// This is the same test with a real timer.
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := new(Retrier).sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := new(Retrier).sleep(t.Context(), time.Nanosecond); err != nil {
		t.Errorf("%v", err)
	}
}

// TestRetrier_AllFail_RetriesATenthOfTheRequests: a service that fails for a long time gets only a tenth more
// requests.
func TestRetrier_AllFail_RetriesATenthOfTheRequests(t *testing.T) {
	t.Parallel()
	s := &script{statuses: slices.Repeat([]int{503}, 5000)}
	retrier := s.retrier()
	const requests = 1000
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range requests / 10 {
				if answer, err := retrier.Do(request(t, http.MethodGet, "")); err == nil {
					answer.Body.Close()
				}
			}
		})
	}
	all.Wait()
	if retries := len(s.sent) - requests; retries < requests/10 || retries > requests/10+maxBudget/retryCost {
		t.Errorf("%d retries of %d requests", retries, requests)
	}
}

func TestNewKey_IsUniqueAndWithinBounds(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		key := NewKey()
		if seen[key] || len(key) < 20 || len(key) > 255 {
			t.Fatalf("key %q", key)
		}
		seen[key] = true
	}
}
