package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// sdk returns a Go client of an instance, for tests.
func sdk(t testing.TB, in *instance, change ...func(*client.Options)) *client.Client {
	t.Helper()
	o := client.Options{
		URL: in.api, Key: testKey, HTTP: &http.Client{Transport: in.http.Transport},
		Backoff: client.Backoff{Base: time.Millisecond, Cap: 20 * time.Millisecond}, OnBackgroundError: func(err error) { t.Error(err) },
	}
	for _, f := range change {
		f(&o)
	}
	c := testenv.Must(t).Get(client.New(o))
	t.Cleanup(func() { closeSDK(t, c) })
	return c
}

func closeSDK(t testing.TB, c *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	assert.NoError(t, c.Close(ctx))
}

// losing returns an option of a client. With it, the client does not get the first n answers to requests whose path
// ends with suffix, although the service has sent them.
func losing(n int32, suffix string) func(*client.Options) {
	var lost atomic.Int32
	return func(o *client.Options) {
		next := o.HTTP.Transport
		o.HTTP = &http.Client{Transport: tripper(func(req *http.Request, _ http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil && strings.HasSuffix(req.URL.Path, suffix) && lost.Add(1) <= n {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				return nil, errors.New("the answer was lost")
			}
			return resp, err
		})}
	}
}

// sdkService is the service of tests that use only their own account.
var sdkService = together[*instance]{start: func(h *host) *instance {
	in := serve(h, backends(h))
	in.do(h, http.StatusCreated, "PUT", "/v1/meters/api_calls", "", object{"unit": "call"})
	return in
}}

// account is a tenant of an instance.
type account struct {
	*instance

	tenant string
}

// account creates a tenant with the name of the test, which has `amount` units of api_calls a year.
func (in *instance) account(t testing.TB, amount int64) account {
	t.Helper()
	a := account{in, t.Name()}
	in.do(t, http.StatusCreated, "PUT", "/v1/plans/"+a.tenant, "", object{"allowances": []object{{"meter": "api_calls", "amount": amount, "every": "year", "anchor": "calendar"}}})
	in.do(t, http.StatusCreated, "PUT", "/v1/tenants/"+a.tenant, "", object{"plan": a.tenant})
	return a
}

// acme returns the account that setUp creates.
func (in *instance) acme() account { return account{in, "acme"} }

func (a account) consume(amount int64) client.ConsumeRequest {
	return client.ConsumeRequest{Tenant: a.tenant, Items: []client.Item{{Meter: "api_calls", Amount: amount}}}
}

// wantLeft fails the test unless exactly this number of units remains. Refunded units are among the remaining units.
func (a account) wantLeft(t testing.TB, left int64) {
	t.Helper()
	assert.Equal(t, left, a.balance(t, a.tenant, "api_calls").Remaining, "left")
}

func TestSDK_LostAnswers_OneOperation(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	var retries []client.RetryEvent
	c := sdk(t, in.instance, losing(3, "/consume"), func(o *client.Options) { o.OnRetry = func(e client.RetryEvent) { retries = append(retries, e) } })
	var meta client.Meta
	answer := testenv.Must(t).Get(c.Consume(t.Context(), in.consume(3), client.WithMeta(&meta)))
	assert.True(t, meta.Attempts == 4 && meta.Replayed && meta.IdempotencyKey != "" && answer.OperationID == meta.IdempotencyKey &&
		answer.Items[0].Remaining == 97, "%+v %+v", meta, answer)
	assert.True(t, len(retries) == 3 && retries[0].Operation == "consume" && retries[2].Attempt == 3 &&
		retries[0].Err != nil, retries)
	in.wantLeft(t, 97)
}

func TestSDK_UnknownOutcome_FinishedWithItsKey(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance, losing(2, "/debits"), func(o *client.Options) { o.Attempts = 2 })
	body := client.DebitRequest{Tenant: in.tenant, Items: []client.Item{{Meter: "api_calls", Amount: 5}}, Metadata: client.Metadata{"invoice": 17}}
	_, err := c.Debit(t.Context(), body)
	e := client.AsError(err)
	require.True(t, e != nil && errors.Is(err, client.ErrUndecided) && e.OutcomeUnknown && e.Code == client.CodeNoAnswer &&
		e.Attempts == 2, err)
	var meta client.Meta
	_, err = c.Debit(t.Context(), body, client.WithKey(e.IdempotencyKey), client.WithMeta(&meta))
	assert.True(t, err == nil && meta.Replayed, "%v %+v", err, meta)
	_, err = c.Debit(t.Context(), body) // the same debit without the key is another operation
	assert.NoError(t, err)
	in.wantLeft(t, 90)
	body.Items[0].Amount = 6
	_, err = c.Debit(t.Context(), body, client.WithKey(e.IdempotencyKey))
	assert.True(t, errors.Is(err, client.ErrIdempotencyKeyReused) && errors.Is(err, client.ErrInvalid), "another request with the key: %v", err)
}

func TestSDK_Refusals_ByCodeAndClass(t *testing.T) {
	in, _ := parallelService(t, 10)
	c := sdk(t, in)
	ctx := t.Context()
	for _, meter := range []string{"credit", "seat"} {
		testenv.Must(t).Get(c.PutMeter(ctx, meter+"s", client.MeterRequest{Unit: meter}))
	}
	_, err := c.PutLimit(ctx, "slow", client.LimitRequest{
		Per: []client.LimitPer{client.LimitPerTenant}, Kind: client.LimitKindTokenBucket, Rate: "1/h", Match: client.LimitMatch{Route: "/slow"},
	})
	require.NoError(t, err)
	slow := in.acme().consume(1)
	slow.Route = "/slow"
	wrong := sdk(t, in, func(o *client.Options) { o.Key = "qk_unknown" })
	ask := func(c *client.Client, body client.ConsumeRequest) func() error {
		return func() error { _, err := c.Consume(ctx, body); return err }
	}
	// The test waits with checks. Debits that the limit does not stop yet would use up the quota. A request that the
	// quota denies is not charged to a limit.
	testenv.Eventually(t, func() bool {
		got, err := c.Check(ctx, client.CheckRequest{Tenant: slow.Tenant, Items: slow.Items, Route: slow.Route})
		return err == nil && len(got.Limits) == 1
	}, "the limit is known")
	require.NoError(t, ask(c, slow)())
	for _, w := range []struct {
		call        func() error
		code, class error
		details     func(*client.Problem) bool
	}{
		{ask(c, in.acme().consume(10)), client.ErrQuotaExceeded, client.ErrDenied, func(p *client.Problem) bool {
			return p.Limiting.Meter == "api_calls" && *p.Required == 10 && *p.Available > 0 && p.ResetAt != nil
		}},
		{ask(c, slow), client.ErrRateLimited, client.ErrDenied, func(p *client.Problem) bool {
			return slices.Equal(p.ViolatedPolicies, []string{"slow"}) && p.RetryAfterMs > 0
		}},
		{ask(c, client.ConsumeRequest{Tenant: "acme", Items: []client.Item{{Meter: "seats", Amount: 1}}}), client.ErrMeterNotInPlan, client.ErrForbidden, nil},
		{ask(c, client.ConsumeRequest{Tenant: "nobody", Items: []client.Item{{Meter: "api_calls", Amount: 1}}}), client.ErrTenantNotFound, client.ErrNotFound, nil},
		{ask(c, in.acme().consume(-1)), client.ErrInvalidArgument, client.ErrInvalid, func(p *client.Problem) bool { return p.Errors[0].Field == "items[0].amount" }},
		{ask(wrong, in.acme().consume(1)), client.ErrUnauthenticated, client.ErrUnauthenticated, nil},
	} {
		err := w.call()
		e := client.AsError(err)
		if e == nil || !errors.Is(err, w.code) || !errors.Is(err, w.class) || errors.Is(err, client.ErrUndecided) || e.Attempts != 1 || e.RequestID == "" {
			t.Errorf("%v: want %v, %v", err, w.code, w.class)
		} else if w.details != nil && !w.details(e.Problem) {
			t.Errorf("%v: %+v", err, e.Problem)
		}
	}
	assert.ErrorContains(t, ask(c, in.acme().consume(-1))(), "items[0].amount must")
}

func TestSDK_CheckBatch_AnswersAndProblems(t *testing.T) {
	in, _ := parallelService(t, 10)
	c := sdk(t, in)
	items := []client.Item{{Meter: "api_calls", Amount: 1}}
	got, err := c.CheckBatch(t.Context(), client.CheckBatchRequest{Checks: []client.CheckRequest{{Tenant: "acme", Items: items}, {Tenant: "nobody", Items: items}}})
	require.True(t, err == nil && len(got.Results) == 2, "%+v %v", got, err)
	a := got.Results[0].Answer
	assert.True(t, a != nil && a.Allowed && got.Results[0].Problem == nil, got.Results[0])
	p := got.Results[1].Problem
	assert.True(t, p != nil && p.Code == client.ProblemCodeTenantNotFound && got.Results[1].Answer == nil, got.Results[1])
}

func TestSDK_AllEntries_EachOnceInOrder(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance, losing(1, "/entries"))
	for i := range 5 {
		_, err := c.Debit(t.Context(), client.DebitRequest{Tenant: in.tenant, Items: []client.Item{{Meter: "api_calls", Amount: int64(i) + 1}}})
		require.NoError(t, err)
	}
	var amounts []int64
	for e, err := range c.AllEntries(t.Context(), in.tenant, client.ListEntriesQuery{Meter: "api_calls", Kind: "debit", Limit: 2}) {
		require.NoError(t, err)
		amounts = append(amounts, e.Amount)
	}
	for i := range amounts {
		amounts[i] = max(amounts[i], -amounts[i])
	}
	assert.Equal(t, []int64{1, 2, 3, 4, 5}, amounts)
	for _, err := range c.AllEntries(t.Context(), "nobody", client.ListEntriesQuery{Meter: "api_calls"}) {
		assert.ErrorIs(t, err, client.ErrTenantNotFound)
	}
}

func TestSDK_FailOpen_ServiceAway_ByMeter(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	var mu sync.Mutex
	var passed []client.FailOpenEvent
	var asked atomic.Int64
	away := func(o *client.Options) {
		o.URL = "http://" + freeAddress(t)
		next := o.HTTP.Transport
		o.HTTP = through(func(req *http.Request, _ http.RoundTripper) (*http.Response, error) {
			asked.Add(1)
			return next.RoundTrip(req)
		})
		o.Attempts = 2
		o.FailOpen = []string{"api_calls"}
		o.OnFailOpen = func(e client.FailOpenEvent) {
			mu.Lock()
			defer mu.Unlock()
			passed = append(passed, e)
		}
	}
	c := sdk(t, in.instance, away)
	var meta client.Meta
	answer, err := c.Consume(t.Context(), in.consume(3), client.WithMeta(&meta))
	assert.True(t, err == nil && meta.FailedOpen && meta.Status == 0 && answer.Items[0].Charged == 0 &&
		answer.Items[0].Shortfall == 3, "%+v %+v %v", answer, meta, err)
	assert.True(t, len(passed) == 1 && passed[0].Operation == "consume" && passed[0].Tenant == in.tenant && errors.Is(passed[0].Err, client.ErrUndecided) &&
		!client.AsError(passed[0].Err).OutcomeUnknown, passed)
	check, err := c.Check(t.Context(), client.CheckRequest{Tenant: in.tenant, Items: in.consume(1).Items})
	assert.True(t, err == nil && check.Allowed && check.Degraded, "%+v %v", check, err)
	other := client.ConsumeRequest{Tenant: in.tenant, Items: []client.Item{{Meter: "api_calls", Amount: 1}, {Meter: "credits", Amount: 1}}}
	_, err = c.Consume(t.Context(), other)
	assert.ErrorIs(t, err, client.ErrUndecided, "one meter is closed")
	_, err = c.Consume(t.Context(), in.consume(1), client.WithFailOpen(false))
	assert.ErrorIs(t, err, client.ErrUndecided, "closed for this call")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Consume(ctx, in.consume(1))
	assert.True(t, errors.Is(err, context.Canceled) && !errors.Is(err, client.ErrUndecided),
		"a caller that left: %v", err)
	for range 3 {
		_, _ = c.Consume(t.Context(), in.consume(1)) // these calls pass
	}
	before := asked.Load()
	for range 1000 {
		testenv.Must(t).Get(c.Consume(t.Context(), in.consume(1)))
	}
	// In each second, one call still sends requests.
	assert.LessOrEqual(t, asked.Load()-before, int64(500),
		"requests of 1,000 calls while the service is known to be away")
	denied := sdk(t, in.instance, func(o *client.Options) { o.FailOpen = []string{client.AllMeters} })
	_, err = denied.Consume(t.Context(), in.consume(101))
	assert.ErrorIs(t, err, client.ErrCreditsExhausted, "a denial is a decision")
	in.wantLeft(t, 100)
}

func TestSDK_FailOpen_ServiceBack_DecidesAgain(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	var broken atomic.Bool
	broken.Store(true)
	c := sdk(t, in.instance, func(o *client.Options) {
		next := o.HTTP.Transport
		o.Attempts, o.FailOpen = 1, []string{"api_calls"}
		o.HTTP = through(func(req *http.Request, _ http.RoundTripper) (*http.Response, error) {
			if broken.Load() {
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: req}, nil
			}
			return next.RoundTrip(req)
		})
	})
	for range 6 {
		testenv.Must(t).Get(c.Consume(t.Context(), in.consume(1)))
	}
	broken.Store(false)
	testenv.Eventually(t, func() bool {
		_, err := c.Consume(t.Context(), in.consume(101))
		return errors.Is(err, client.ErrCreditsExhausted)
	}, "the service decides again")
	in.wantLeft(t, 100)
}

func TestSDK_ConsumeFor_FailedWork_Refunded(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance, losing(1, "/refunds"))
	broke := errors.New("the work broke")
	assert.ErrorIs(t, c.ConsumeFor(t.Context(), in.consume(3), func(context.Context, *client.DebitAnswer) error { return broke }), broke)
	in.wantLeft(t, 100)
	func() {
		defer func() { _ = recover() }()
		_ = c.ConsumeFor(t.Context(), in.consume(5), func(context.Context, *client.DebitAnswer) error { panic("broken") })
	}()
	in.wantLeft(t, 100)
	ran := false
	work := func(_ context.Context, a *client.DebitAnswer) error { ran = a.Items[0].Charged == 7; return nil }
	err := c.ConsumeFor(t.Context(), in.consume(7), work)
	assert.True(t, err == nil && ran, "%v, ran %t", err, ran)
	in.wantLeft(t, 93)
	ran = false
	err = c.ConsumeFor(t.Context(), in.consume(1000), work)
	assert.True(t, errors.Is(err, client.ErrDenied) && !ran, "%v, ran %t", err, ran)
	assert.NoError(t, errors.Join(c.Undo(t.Context(), in.tenant, "no-such-operation"), c.Undo(t.Context(), in.tenant, "no-such-operation")))
}
