package e2e

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func (a account) hold(amount int64) client.HoldRequest {
	return client.HoldRequest{Tenant: a.tenant, Items: []client.Item{{Meter: "api_calls", Amount: amount}}}
}

// wantSettled fails the test unless this number of units was used and no unit is held.
func (a account) wantSettled(t testing.TB, used int64) {
	t.Helper()
	b := a.balance(t, a.tenant, "api_calls")
	assert.True(t, b.Used == used && b.Remaining == b.Granted-used, "%+v, want %d used and none held", b, used)
}

// words returns a sequence of n elements. If end is not nil, the sequence ends with this error.
func words(n int, end error) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for range n {
			if !yield("four", nil) {
				return
			}
		}
		if end != nil {
			yield("", end)
		}
	}
}

func TestSDK_Stream_AnyEnd_CapturesWhatPassed(t *testing.T) {
	in := sdkService.parallel(t).account(t, 1000)
	c := sdk(t, in.instance, losing(1, "/holds"), losing(1, "/capture"))
	broke := errors.New("the model broke")
	cost := func(word string) int64 { return int64(len(word)) }
	run := func(source iter.Seq2[string, error], stop int) (n int, err error) {
		h := testenv.Must(t).Get(c.Hold(t.Context(), in.hold(100)))
		for _, e := range client.Stream(t.Context(), h, source, cost) {
			if e != nil {
				return n, e
			}
			if n++; n == stop {
				break
			}
		}
		return n, nil
	}
	n, err := run(words(5, nil), 0)
	assert.True(t, n == 5 && err == nil, "%d %v", n, err)
	in.wantSettled(t, 20)
	n, err = run(words(3, broke), 0)
	assert.True(t, n == 3 && errors.Is(err, broke), "%d %v", n, err)
	in.wantSettled(t, 32)
	n, err = run(words(9, nil), 2) // the reader stops after two elements
	assert.True(t, n == 2 && err == nil, "%d %v", n, err)
	in.wantSettled(t, 40)
}

func TestSDK_HoldFor_FailsPanicsOrLeaves_Captured(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance)
	broke := errors.New("the work broke")
	ctx, cancel := context.WithCancel(t.Context())
	result, err := c.HoldFor(ctx, in.hold(50), func(_ context.Context, h *client.HeldUnits) error {
		cancel() // ends the context, as when the reader leaves
		return errors.Join(h.Use(17), broke)
	})
	assert.True(t, errors.Is(err, broke) && result.Used == 17 && result.Charged == 17, "%+v %v", result, err)
	in.wantSettled(t, 17)
	func() {
		defer func() { _ = recover() }()
		_, _ = c.HoldFor(t.Context(), in.hold(50), func(_ context.Context, h *client.HeldUnits) error { _ = h.Use(3); panic("broken") })
	}()
	in.wantSettled(t, 20)
	result, err = c.HoldFor(t.Context(), in.hold(50), func(context.Context, *client.HeldUnits) error { return nil })
	assert.True(t, err == nil && *result == (client.HoldResult{}), "%+v %v", result, err)
	in.wantSettled(t, 20)
	ran := false
	_, err = c.HoldFor(t.Context(), in.hold(1000), func(context.Context, *client.HeldUnits) error { ran = true; return nil })
	assert.True(t, errors.Is(err, client.ErrCreditsExhausted) && !ran, "%v, ran %t", err, ran)
}

func TestSDK_Hold_MoreThanHeld_ChargedAsFarAsCovered(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance, losing(1, "/capture"), losing(1, "/debits"))
	for i, w := range []struct{ held, use, charged, shortfall, used int64 }{
		{10, 30, 30, 0, 30},
		{10, 90, 70, 20, 100},
	} {
		result, err := c.HoldFor(t.Context(), in.hold(w.held), func(_ context.Context, h *client.HeldUnits) error { return h.Use(w.use) })
		require.NoError(t, err, "%d", i)
		assert.Equal(t, client.HoldResult{Used: w.use, Charged: w.charged, Shortfall: w.shortfall}, *result, "%d", i)
		in.wantSettled(t, w.used)
	}
}

func TestSDK_Hold_Ended_UseIsDebited(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance)
	h := testenv.Must(t).Get(c.Hold(t.Context(), in.hold(10)))
	testenv.Must(t).Get(c.ReleaseHold(t.Context(), h.ID(), client.ReleaseRequest{Tenant: in.tenant}))
	require.NoError(t, h.Use(4))
	result, err := h.Finish(t.Context())
	assert.True(t, err == nil && result.Charged == 4, "%+v %v", result, err)
	in.wantSettled(t, 4)
	again, err := h.Finish(t.Context())
	assert.True(t, err == nil && again.Charged == 4, "%+v %v", again, err)
	assert.Error(t, h.Use(1), "a hold that has ended counts")
	in.wantSettled(t, 4)
}

func TestSDK_Hold_InUse_IsExtended(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance)
	body := in.hold(10)
	body.TTLSeconds = 2
	h := testenv.Must(t).Get(c.Hold(t.Context(), body))
	first := h.Answer.ExpiresAt
	testenv.Eventually(t, func() bool {
		got, err := c.GetHold(t.Context(), in.tenant, h.ID())
		return err == nil && got.Status == client.HoldStatusActive && got.ExpiresAt.After(first)
	}, "the hold is extended")
	result, err := h.Release(t.Context())
	assert.True(t, err == nil && *result == (client.HoldResult{}), "%+v %v", result, err)
	in.wantSettled(t, 0)
}

func TestSDK_Hold_WrongUse_Refused(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance)
	_, err := c.Hold(t.Context(), client.HoldRequest{Tenant: in.tenant})
	assert.Error(t, err, "a hold of nothing")
	h, err := c.Hold(t.Context(), in.hold(10), client.WithKey("job-17"))
	require.True(t, err == nil && h.ID() == "job-17" && h.Left() == 10, "%+v %v", h, err)
	assert.True(t, h.Use(-1) != nil && h.UseOf("credits", 1) != nil && h.Use(1<<53) != nil, "wrong use is counted")
	err = h.Use(3)
	assert.True(t, err == nil && h.Left() == 7 && h.Used() == 3, "%v: %d left", err, h.Left())
	_, err = h.Finish(t.Context())
	assert.NoError(t, err)
	in.wantSettled(t, 3)
}

func TestSDK_Hold_ServiceAway_DebitedAtItsEnd(t *testing.T) {
	in := sdkService.parallel(t).account(t, 100)
	c := sdk(t, in.instance, func(o *client.Options) {
		losing(1, "/holds")(o) // loses the answer to the only attempt
		o.Attempts, o.FailOpen = 1, []string{"api_calls"}
	})
	body := in.hold(10)
	body.TTLSeconds = 1 // the service may have held the units, and returns them soon
	h, err := c.Hold(t.Context(), body)
	require.True(t, err == nil && h.FailedOpen(), "%+v %v", h, err)
	require.NoError(t, h.Use(6))
	result, err := h.Finish(t.Context())
	assert.True(t, err == nil && result.Charged == 6, "%+v %v", result, err)
	testenv.Eventually(t, func() bool {
		b := in.balance(t, in.tenant, "api_calls")
		return b.Used == 6 && b.Remaining == 94
	}, "nothing is held")
}

func TestSDK_LocalUnits_OfAClient_SpendsAndCloses(t *testing.T) {
	in, _ := parallelService(t, 1000)
	l, err := sdk(t, in).LocalUnits(client.LocalUnitsOptions{Tenant: "acme", Meter: "api_calls", Min: 10, Max: 100})
	require.NoError(t, err)
	for range 50 {
		takeWait(t, l, 1)
	}
	closeAndCompare(t, in, l)
}
