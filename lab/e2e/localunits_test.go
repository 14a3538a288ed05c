package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// asBackend is the environment variable with the URL of a service. If it is set, the test binary runs as a backend
// that spends local units of that service. Tests kill such a backend.
const asBackend = "TEST_AS_BACKEND"

// backend takes units one by one until the balance has none. After each unit it prints the number of taken units and
// the number of uncharged units. At the end it prints "closed".
func backend(url string) int {
	l, err := client.NewLocalUnits(client.LocalUnitsOptions{
		URL: url, Key: testKey, Tenant: "acme", Meter: "api_calls", Min: 50, Max: 200, TTL: 2 * time.Second, CaptureEvery: 20 * time.Millisecond,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	for n := 1; ; n++ {
		if err := l.TakeWait(ctx, 1); errors.Is(err, client.ErrExhausted) {
			break
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(n, l.Stats().Uncharged)
	}
	if err := l.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("closed")
	return 0
}

// startBackend runs backend in a separate process. The returned scanner reads the standard output of the process.
func startBackend(t *testing.T, url string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asBackend+"="+url)
	cmd.Stderr = os.Stderr
	out := testenv.Must(t).Get(cmd.StdoutPipe())
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// localUnits returns local units of acme's meter api_calls. They are closed at the end of the test. After that, the
// service must have charged every taken unit once.
func localUnits(t testing.TB, in *instance, change func(*client.LocalUnitsOptions)) *client.LocalUnits {
	t.Helper()
	o := client.LocalUnitsOptions{
		URL: in.api, Key: testKey, Tenant: "acme", Meter: "api_calls", Min: 10, Max: 500, Client: &http.Client{Transport: in.http.Transport},
		Backoff: client.Backoff{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond},
	}
	change(&o)
	l := testenv.Must(t).Get(client.NewLocalUnits(o))
	t.Cleanup(func() { _ = l.Close(context.Background()) }) // tests that need the error call Close themselves
	return l
}

// closeAndCompare closes l. After that, the service must have charged every taken unit, and must hold no units.
func closeAndCompare(t *testing.T, in *instance, l *client.LocalUnits) client.LocalStats {
	t.Helper()
	closeLocal(t, l)
	s := l.Stats()
	assert.True(t, s.Captured+s.Debited+s.Shortfall == s.Taken && s.Uncharged == 0 && s.Held == 0,
		"after Close: %+v", s)
	b := in.balance(t, "acme", "api_calls")
	assert.True(t, b.Used == s.Taken-s.Shortfall && b.Remaining == b.Granted-b.Used,
		"taken %+v, the balance is %+v", s, b)
	return s
}

// takeWait takes n units. It fails the test if it does not get them.
func takeWait(t *testing.T, l *client.LocalUnits, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	require.NoError(t, l.TakeWait(ctx, n))
}

// tripper is a transport for tests. It may change the requests of a client and the answers that the client gets.
type tripper func(req *http.Request, next http.RoundTripper) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	return f(req, http.DefaultTransport)
}

func through(f tripper) *http.Client { return &http.Client{Transport: f} }

func TestLocalUnits_ManyTakers_ChargedWhatWasTaken(t *testing.T) {
	in, env := parallelService(t, 1_000_000)
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) { o.CaptureEvery = 20 * time.Millisecond })
	var sum atomic.Int64
	testenv.Together(8, func(_ int) {
		for range 500 {
			n := rand.Int64N(5) + 1
			if err := l.TakeWait(t.Context(), n); err != nil {
				t.Error(err)
				return
			}
			sum.Add(n)
		}
	})
	s := closeAndCompare(t, in, l)
	assert.True(t, s.Taken == sum.Load() && s.Captured == s.Taken, "%+v, granted were %d", s, sum.Load())
	assert.True(t, s.Requests <= 4000/5, "%d requests for 4000 takes", s.Requests)
	must(t, env, "verify")
}

// Two processes that share a balance together grant all units of the balance, and no unit twice.
func TestLocalUnits_TwoProcesses_GrantTheBalanceOnce(t *testing.T) {
	t.Parallel()
	in := serve(t, backends(t))
	const units = 3000
	in.setUp(t, units)
	var granted atomic.Int64
	var both sync.WaitGroup
	for range 2 {
		cmd, out := startBackend(t, in.api)
		both.Go(func() {
			last := ""
			for out.Scan() {
				if out.Text() != "closed" {
					last, _, _ = strings.Cut(out.Text(), " ")
				}
			}
			n, err := strconv.ParseInt(last, 10, 64)
			assert.NoError(t, errors.Join(err, cmd.Wait()))
			granted.Add(n)
		})
	}
	both.Wait()
	b := in.balance(t, "acme", "api_calls")
	assert.True(t, b.Used == granted.Load() && b.Used <= units && b.Remaining == units-b.Used,
		"granted %d, balance %+v", granted.Load(), b)
	// The next process can take the units that a process returned at its end.
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) {})
	for range units - b.Used {
		takeWait(t, l, 1)
	}
	assert.ErrorIs(t, l.TakeWait(t.Context(), 1), client.ErrExhausted, "beyond the balance")
	closeLocal(t, l)
	assert.EqualValues(t, units, in.balance(t, "acme", "api_calls").Used)
}

func closeLocal(t *testing.T, l *client.LocalUnits) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	assert.NoError(t, l.Close(ctx))
}

// A killed backend loses only the use that it has not captured. Its units return when its holds expire.
func TestLocalUnits_BackendKilled_LosesUncapturedUseOnly(t *testing.T) {
	in, _ := parallelService(t, 1_000_000)
	cmd, out := startBackend(t, in.api)
	var taken, uncharged int64
	for range 2000 {
		require.True(t, out.Scan(), "the backend ended")
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	for more := true; more; more = out.Scan() { // reads up to the last line that the killed backend printed
		_, err := fmt.Sscan(out.Text(), &taken, &uncharged)
		require.NoError(t, err, "%q", out.Text())
	}
	_ = cmd.Wait() // the error says that the process was killed
	testenv.Eventually(t, func() bool {
		b := in.balance(t, "acme", "api_calls")
		return b.Remaining == b.Granted-b.Used
	})
	// The backend may have taken one more unit than it printed.
	b := in.balance(t, "acme", "api_calls")
	assert.True(t, b.Used <= taken+1 && taken-b.Used <= uncharged,
		"taken %d, of which %d were not charged; the balance is %+v", taken, uncharged, b)
}

func TestLocalUnits_LostAnswers_ChargedOnce(t *testing.T) {
	in, _ := parallelService(t, 1_000_000)
	var n, lost atomic.Int64
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) {
		o.Max, o.CaptureEvery = 100, 10*time.Millisecond
		o.Client = through(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if err == nil && n.Add(1)%3 != 0 { // two of three answers are lost
				lost.Add(1)
				resp.Body.Close()
				return nil, errors.New("the answer is lost")
			}
			return resp, err
		})
	})
	for range 3000 {
		takeWait(t, l, 1)
	}
	s := closeAndCompare(t, in, l)
	assert.True(t, s.Taken == 3000 && s.Debited == 0 && lost.Load() >= 50, "%+v with %d lost answers", s, lost.Load())
}

// If a process was stopped for a long time, its hold has expired. The units that it had taken from the hold are then
// debited.
func TestLocalUnits_HoldExpiresInUse_RestIsDebited(t *testing.T) {
	in, _ := parallelService(t, 1000)
	var cut atomic.Bool
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) {
		o.Min, o.TTL, o.CaptureEvery = 100, 2*time.Second, time.Millisecond
		o.Client = through(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			if cut.Load() {
				return nil, errors.New("cut")
			}
			return next.RoundTrip(req)
		})
	})
	takeWait(t, l, 30)
	testenv.Eventually(t, func() bool { return l.Stats().Captured == 30 })
	cut.Store(true)
	require.NoError(t, l.Take(1), "of held units")
	testenv.Eventually(t, func() bool {
		b := in.balance(t, "acme", "api_calls")
		return b.Used == 30 && b.Remaining == 970
	})
	err := l.Take(1)
	assert.True(t, errors.Is(err, client.ErrRefilling) || errors.Is(err, client.ErrAway), "of an expired hold: %v", err)
	cut.Store(false)
	testenv.Eventually(t, func() bool { return l.Stats().Debited == 1 })
	s := closeAndCompare(t, in, l)
	assert.True(t, s.Captured == 30 && s.Debited == 1, s)
}

func TestLocalUnits_ServiceKilled_SpendsHeldRefusesAndGoesOn(t *testing.T) {
	in, env := parallelService(t, 10_000)
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) { o.Min, o.CaptureEvery = 200, 50*time.Millisecond })
	takeWait(t, l, 1)
	in.signal(syscall.SIGKILL)
	in.wait()
	held := l.Stats().Held
	require.True(t, held >= 199, "%d units are held", held)
	for range held {
		require.NoError(t, l.Take(1), "of held units")
	}
	testenv.Eventually(t, func() bool { return errors.Is(l.Take(1), client.ErrAway) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := l.TakeWait(ctx, 1)
	assert.True(t, errors.Is(err, client.ErrAway) && errors.Is(err, context.DeadlineExceeded), "waited: %v", err)
	again := serve(t, env, strings.TrimPrefix(in.api, "http://"))
	takeWait(t, l, 7)
	s := closeAndCompare(t, again, l)
	assert.True(t, s.Taken == held+8 && s.Captured == s.Taken, s)
}

func TestLocalUnits_ServiceAway_UnbackedUpToBound_DebitedAfter(t *testing.T) {
	in, _ := parallelService(t, 130)
	var cut atomic.Bool
	var asked atomic.Int64 // requests without an answer yet
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) {
		o.Min, o.UnbackedMax = 100, 60
		o.Client = through(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			if cut.Load() {
				return nil, errors.New("cut")
			}
			asked.Add(1)
			defer asked.Add(-1)
			return next.RoundTrip(req)
		})
	})
	takeWait(t, l, 100)
	testenv.Eventually(t, func() bool { s := l.Stats(); return s.Captured == 100 && s.Held > 0 })
	cut.Store(true)
	taken := int64(0)
	testenv.Eventually(t, func() bool {
		err := l.Take(1)
		for ; err == nil; err = l.Take(1) {
			taken++
		}
		return errors.Is(err, client.ErrAway) && asked.Load() == 0
	}, "beyond UnbackedMax nothing is taken")
	held := taken - 60 // a part of the 30 units that remain in the balance
	require.True(t, held >= 0 && held < 30, "%d are taken without a service", taken)
	cut.Store(false)
	testenv.Eventually(t, func() bool { return l.Stats().Uncharged == 0 })
	// The use is first charged to the rest of the balance, except units of a hold that was requested while the
	// service was away. No unit is charged beyond the balance.
	s := closeAndCompare(t, in, l)
	left := in.balance(t, "acme", "api_calls").Remaining
	assert.True(t, s.Shortfall == 30+held+left && s.Debited == 30-held-left && left <= (30-held)/4+1,
		"held %d, left %d, %+v", held, left, s)
}

// While captures get no answers, the use that a crash would lose is bounded.
func TestLocalUnits_CapturesFail_AtMostFourHolds(t *testing.T) {
	in, _ := parallelService(t, 1_000_000)
	var cut atomic.Bool
	var made atomic.Int64
	cut.Store(true)
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) {
		o.Min, o.Max = 50, 50
		o.Client = through(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/capture") && cut.Load() {
				return nil, errors.New("cut")
			}
			resp, err := next.RoundTrip(req)
			if strings.HasSuffix(req.URL.Path, "/holds") {
				made.Add(1)
			}
			return resp, err
		})
	})
	for range 4 * 50 {
		takeWait(t, l, 1)
	}
	testenv.Eventually(t, func() bool { return errors.Is(l.Take(1), client.ErrAway) })
	s := l.Stats()
	assert.True(t, made.Load() == 4 && s.Uncharged == 200, "%d holds, %+v", made.Load(), s)
	cut.Store(false)
	takeWait(t, l, 50)
	s = closeAndCompare(t, in, l)
	assert.True(t, s.Captured == 250 && s.Debited == 0, s)
}

func TestLocalUnits_Close_ReturnsTheRestAtOnce(t *testing.T) {
	in, _ := parallelService(t, 1000)
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) { o.CaptureEvery = time.Hour })
	takeWait(t, l, 3)
	assert.EqualValues(t, 3, closeAndCompare(t, in, l).Captured)
	unused := localUnits(t, in, func(o *client.LocalUnitsOptions) {})
	_ = unused.Take(1) // requests a hold, which the service may refuse
	closeLocal(t, unused)
	b := in.balance(t, "acme", "api_calls")
	assert.True(t, b.Remaining == 1000-b.Used, b)
}

func TestLocalUnits_CloseWithoutService_EndsInTimeWithError(t *testing.T) {
	in, _ := parallelService(t, 1000)
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) { o.CaptureEvery = time.Hour })
	takeWait(t, l, 3)
	in.signal(syscall.SIGKILL)
	in.wait()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := l.Close(ctx)
	assert.True(t, err != nil && strings.Contains(err.Error(), "3 used units were not charged"), err)
	assert.ErrorIs(t, l.Take(1), client.ErrClosed, "after Close")
}

// The service's clock may be hours ahead or behind. Only the time between as_of and expires_at of an answer counts.
func TestLocalUnits_ServiceClockOff_SameResult(t *testing.T) {
	in, _ := parallelService(t, 100_000)
	times := regexp.MustCompile(`"(as_of|expires_at)":"([^"]+)"`)
	for _, off := range []time.Duration{10 * time.Hour, -10 * time.Hour} {
		before := in.balance(t, "acme", "api_calls").Used
		l := localUnits(t, in, func(o *client.LocalUnitsOptions) {
			o.TTL = 3 * time.Second
			o.Client = through(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				resp, err := next.RoundTrip(req)
				if err != nil {
					return nil, err
				}
				defer resp.Body.Close()
				raw, err := io.ReadAll(resp.Body)
				shifted := times.ReplaceAllStringFunc(string(raw), func(s string) string {
					parts := times.FindStringSubmatch(s)
					at, err := time.Parse(time.RFC3339Nano, parts[2])
					assert.NoError(t, err)
					return fmt.Sprintf(`"%s":%q`, parts[1], at.Add(off).Format(time.RFC3339Nano))
				})
				resp.Body = io.NopCloser(strings.NewReader(shifted))
				resp.ContentLength = int64(len(shifted))
				resp.Header.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
				return resp, err
			})
		})
		for range 1000 {
			takeWait(t, l, 1)
		}
		closeLocal(t, l)
		s := l.Stats()
		assert.True(t, s.Captured == 1000 && s.Requests <= 200, "%s: %+v", off, s)
		b := in.balance(t, "acme", "api_calls")
		assert.True(t, b.Used-before == 1000 && b.Remaining == b.Granted-b.Used, "%s: %+v", off, b)
	}
}

func TestLocalUnits_Exhausted_SaysWhy_TopUpIsNoticed(t *testing.T) {
	in, _ := parallelService(t, 20)
	l := localUnits(t, in, func(*client.LocalUnitsOptions) {})
	for range 20 {
		takeWait(t, l, 1)
	}
	err := l.TakeWait(t.Context(), 1)
	denial, ok := errors.AsType[*client.LocalDenial](err)
	require.True(t, ok && errors.Is(err, client.ErrExhausted) && denial.Status == http.StatusTooManyRequests && denial.Code == "quota_exceeded" &&
		denial.RetryAfter >= time.Second, "%#v", err)
	requests := l.Stats().Requests
	for range 1000 {
		_ = l.Take(1) // answered from the earlier denial, without a request
	}
	assert.LessOrEqual(t, l.Stats().Requests-requests, int64(2), "requests")
	in.do(t, http.StatusCreated, "POST", "/v1/tenants/acme/grants", "paid", object{"meter": "api_calls", "amount": 5, "source": "topup"})
	testenv.Eventually(t, func() bool { return l.Take(1) == nil })
	closeAndCompare(t, in, l)
}

// A hold in use is extended, so that its units are not returned. A hold that is not in use is returned.
func TestLocalUnits_SlowUse_HoldIsExtendedThenReturned(t *testing.T) {
	in, _ := parallelService(t, 1000)
	l := localUnits(t, in, func(o *client.LocalUnitsOptions) { o.Min, o.TTL, o.CaptureEvery = 500, 2*time.Second, time.Hour })
	began := time.Now()
	testenv.Eventually(t, func() bool { // longer than a hold exists without an extension
		takeWait(t, l, 1)
		return time.Since(began) > 2500*time.Millisecond
	})
	list := decoded[struct{ Items []struct{ Status string } }](t,
		in.do(t, http.StatusOK, "GET", "/v1/tenants/acme/holds", "", nil))
	assert.True(t, len(list.Items) != 0 && list.Items[0].Status == "active" &&
		list.Items[len(list.Items)-1].Status == "active", "holds %+v", list.Items)
	assert.Zero(t, in.balance(t, "acme", "api_calls").Used, "captured too early")
	testenv.Eventually(t, func() bool {
		b := in.balance(t, "acme", "api_calls")
		return b.Used == l.Stats().Taken && b.Remaining == b.Granted-b.Used
	})
	closeAndCompare(t, in, l)
}
