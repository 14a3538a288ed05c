package gate

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// transactionCounter forwards connections to PostgreSQL. It counts the transactions that end: after each of them the
// server reports that it is idle.
type transactionCounter struct{ ended atomic.Int64 }

// countTransactions starts a counter in front of the server of databaseURL. It returns the URL of the counter.
func countTransactions(t testing.TB, databaseURL string) (string, *transactionCounter) {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	c, server := &transactionCounter{}, u.Host
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go c.forward(client, server)
		}
	}()
	u.Host = listener.Addr().String()
	return u.String(), c
}

func (c *transactionCounter) forward(client net.Conn, server string) {
	defer func() { _ = client.Close() }()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = upstream.Close() }()
	go func() {
		_, _ = io.Copy(upstream, client)
		_ = upstream.Close()
	}()
	for header := make([]byte, 5); ; {
		if _, err := io.ReadFull(upstream, header); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(upstream, message); err != nil {
			return
		}
		if header[0] == 'Z' && message[0] == 'I' { // ReadyForQuery with status idle
			c.ended.Add(1)
		}
		if _, err := client.Write(append(header[:5:5], message...)); err != nil {
			return
		}
	}
}

// newCounted starts an instance, and counts its transactions.
func newCounted(t *testing.T) (*instance, *transactionCounter) {
	t.Helper()
	counted, c := countTransactions(t, testenv.Postgres(t))
	return newInstance(t, counted, patientClient(testenv.Redis(t))), c
}

// A client that repeats a request with a known answer must not cost PostgreSQL a transaction each time. Without
// answers from memory, 500 consumes took 510 transactions for a tenant without units, and 2,172 for an unknown
// tenant. 500 replays took 336.
func TestConsume_FloodOfRefusals_SparesPostgres(t *testing.T) {
	t.Parallel()
	const flood = 200
	in, counted := newCounted(t)
	in.catalogue()
	in.putWide()
	slow := catalog.Limit{Rule: "slow", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/min"}
	in.putLimits(slow)
	in.putTenant(catalog.Tenant{ID: "warm", Plan: "basic"})
	for i := range 20 { // open the connections and prepare the statements
		_, _ = in.Consume(t.Context(), forTenant("warm", request("w"+strconv.Itoa(i%6), "calls", 5)))
	}
	for name, tc := range map[string]struct {
		request func(i int) Request
		most    int64
		code    errcode.Code
	}{
		"a tenant without units":          {func(i int) Request { return request(strconv.Itoa(i), "credits", 1) }, 10, errcode.CreditsExhausted},
		"more units than there are":       {func(i int) Request { return request(strconv.Itoa(i), "calls", 11+int64(i%3)) }, 10, errcode.CreditsExhausted},
		"a meter that is not in the plan": {func(i int) Request { return request(strconv.Itoa(i), "other", 1) }, 10, errcode.MeterNotInPlan},
		"a tenant that does not exist": {func(i int) Request {
			return forTenant("nobody", request(strconv.Itoa(i), "calls", 1))
		}, 5, errcode.TenantNotFound},
		"one key": {func(int) Request { return request("same", "calls", 1) }, 10, ""},
		"two meters": {func(i int) Request {
			r := request(strconv.Itoa(i), "calls", 1)
			r.Items = append(r.Items, ledger.Item{Meter: "credits", Amount: 1})
			return r
		}, 20, errcode.CreditsExhausted},
		"an overflow meter without units":                 {func(i int) Request { return wideRequest(i, "flowing", "", 1) }, 20, errcode.CreditsExhausted},
		"beyond the cap of overage":                       {func(i int) Request { return wideRequest(i, "over", "", 7) }, 20, errcode.CreditsExhausted},
		"beyond a subject's cap":                          {func(i int) Request { return wideRequest(i, "capped", "ann", 4) }, 20, errcode.CreditsExhausted},
		"beyond a plan with capped subjects, without one": {func(i int) Request { return wideRequest(i, "capped", "", 11) }, 20, errcode.CreditsExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			began, before := time.Now(), counted.ended.Load()
			for i := range flood {
				out, err := in.Consume(t.Context(), tc.request(i))
				in.expectCode(tc.code, "a refused consume", err)
				if err == nil {
					require.Equal(t, i > 0, out.Result.Replayed, "consume %d: replayed", i)
				}
			}
			took := time.Since(began)
			// A balance is read again after 100 ms, or after a second while Redis confirms it. The listener of the
			// catalogue queries once a second.
			allowed := tc.most + int64(took/refusalAge)
			if n := counted.ended.Load() - before; n > allowed {
				t.Errorf("%d consumes in %s took %d transactions, want %d at most", flood, took, n, allowed)
			} else {
				t.Logf("%d consumes in %s took %d transactions", flood, took, n)
			}
		})
	}
}

// putWide stores the plan "wide", in which more than one balance decides about a meter. It also stores the tenant
// "wide" on this plan.
func (in *instance) putWide() {
	in.t.Helper()
	in.putMeters("flowing", "over", "capped")
	flowing, over, capped := yearly("flowing", 0), yearly("over", 2), yearly("capped", 10)
	flowing.Overflow = &catalog.Overflow{Meter: "credits", Price: price.Whole(2)}
	over.Overage = &catalog.Overage{Policy: "allow", Cap: new(int64(4))}
	capped.PerSubject = new(int64(3))
	in.putPlan(catalog.Plan{ID: "wide", Allowances: []catalog.Allowance{flowing, over, capped, noCredits}})
	in.putTenant(catalog.Tenant{ID: "wide", Plan: "wide"})
}

// wideRequest returns a request of the tenant "wide".
func wideRequest(i int, meter, subject string, amount int64) Request {
	return forTenant("wide", forSubject(subject, request(strconv.Itoa(i), meter, amount)))
}

// If a balance refuses repeatedly, Redis announces its changes. So the balance is read once a second instead of ten
// times.
func TestConsume_LongFlood_ReadsTheBalanceOnceASecond(t *testing.T) {
	t.Parallel()
	in, counted := newCounted(t)
	in.catalogue()
	now, i := time.Now(), 0
	in.clock = func() time.Time { return now }
	refuse := func() (transactions int64) {
		before := counted.ended.Load()
		in.consumes(errcode.CreditsExhausted, "a refused consume", request(strconv.Itoa(i), "credits", 1))
		now, i = now.Add(refusalAge), i+1
		return counted.ended.Load() - before
	}
	testenv.Eventually(t, func() bool { return refuse() == 0 }, "a refusal without a read of a balance older than refusalAge")
	reads := 0
	for range 50 { // the clock advances by 5 s
		if refuse() > 0 {
			reads++
		}
	}
	// There are 5 reads, and the listener's query once a second.
	assert.True(t, reads <= 12, "%d of 50 refusals in 5 s came with transactions", reads)
	_, known := in.refusals.refusing.Peek(ledger.BalanceKey{Tenant: "acme", Meter: "credits"})
	assert.True(t, known, "the balance is not remembered")
	in.topUp("more", "credits", 1)
	out, err := in.Consume(t.Context(), request("paid", "credits", 1))
	assert.True(t, err == nil && out.Result.Items[0].Charged == 1, "%+v, %v after a top-up", out, err)
	b, known := in.refusals.refusing.Peek(ledger.BalanceKey{Tenant: "acme", Meter: "credits"})
	assert.False(t, known && b.spends.IsZero(), "a balance that paid is remembered as one that refuses")
}

// A consume that is refused, is a replay or is for an unknown tenant charges limits that count attempts, but not
// limits that count successes.
func TestConsume_CountsAttempts_RefusedCostsTokens(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	for _, counts := range []string{"attempts", "successes"} {
		in.putTenant(catalog.Tenant{ID: counts, Plan: "basic"})
		in.putTenant(catalog.Tenant{ID: "replays-" + counts, Plan: "basic"})
		for name, tc := range map[string]struct {
			tenant, key, meter string
			code               errcode.Code
		}{
			"a tenant without units":       {counts, "", "credits", errcode.CreditsExhausted},
			"a tenant that does not exist": {"nobody-" + counts, "", "calls", errcode.TenantNotFound},
			"a replay":                     {"replays-" + counts, "same", "calls", ""},
		} {
			t.Run(name+", "+counts, func(t *testing.T) {
				in.putLimits(catalog.Limit{
					Rule: tc.tenant, Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/h", Counts: counts,
					Match: catalog.Match{Route: "/" + tc.tenant},
				})
				for i := range 8 {
					want := tc.code
					if i >= 5 && counts == "attempts" {
						want = CodeRateLimited
					}
					req := request(cmp.Or(tc.key, strconv.Itoa(i)), tc.meter, 1)
					req.Tenant, req.Route = tc.tenant, "/"+tc.tenant
					in.consumes(want, "consume "+strconv.Itoa(i), req)
				}
			})
		}
	}
}

// A request whose key was already charged gets its stored answer, although memory refuses other debits of the same
// balance and other debits with the same question.
func TestConsume_RefusedFromMemory_StoredKeyIsReplayed(t *testing.T) {
	t.Parallel()
	in, other := newTwo(t)
	in.catalogue()
	in.putWide()
	other.consumes("", "a consume elsewhere", request("charged-elsewhere", "calls", 5))
	in.consumes("", "a consume here", request("charged-here", "calls", 5))
	other.consumes("", "a consume elsewhere", wideRequest(100, "over", "", 5))
	for i := range 10 {
		in.consumes(errcode.QuotaExceeded, "a consume of more than there is", request(strconv.Itoa(i), "calls", 5))
		in.consumes(errcode.QuotaExceeded, "a consume of more than there is", wideRequest(i, "over", "", 5))
		for _, req := range []Request{
			request("charged-elsewhere", "calls", 5), request("charged-here", "calls", 5),
			wideRequest(100, "over", "", 5),
		} {
			out, err := in.Consume(t.Context(), req)
			require.True(t, err == nil && out.Result.Replayed, "%s: %v, want its stored answer", req.Key, err)
		}
	}
}

// Granted units can be spent by the next request on the instance that granted them. Other instances know them within
// 100 ms.
func TestConsume_RefusedFromMemory_TopUpCounts(t *testing.T) {
	t.Parallel()
	in, other := newTwo(t)
	in.catalogue()
	refused := 0
	refuse := func() {
		for range 5 {
			refused++
			in.consumes(errcode.CreditsExhausted, "no units", request(fmt.Sprint("r", refused), "credits", 3))
		}
	}
	refuse()
	in.topUp("here", "credits", 3)
	in.consumes("", "a consume after a top-up on the same instance", request("a", "credits", 3))
	refuse()
	other.topUp("there", "credits", 3)
	now, tries := time.Now().Add(refusalAge), 0 // the clock is stopped: age causes no new read of the balance
	in.clock = func() time.Time { return now }
	testenv.Eventually(t, func() bool {
		tries++
		_, err := in.Consume(t.Context(), request("b"+strconv.Itoa(tries), "credits", 3))
		return err == nil
	}, "a consume after a top-up on another instance")
}

// If a tenant has more operations than can be remembered, the ledger decides, because one of the operations might
// have the request's key.
func TestConsume_ManyOperations_LedgerDecides(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.refusals.most = 3
	reads := 0
	in.refusals.onKeys = func() { reads++ }
	in.catalogue()
	for i := range 5 {
		in.consumes("", "a consume", request("k"+strconv.Itoa(i), "calls", 2))
	}
	for i := range 5 {
		in.consumes(errcode.QuotaExceeded, "a consume without units", request(strconv.Itoa(i), "calls", 2))
		out, err := in.Consume(t.Context(), request("k"+strconv.Itoa(i), "calls", 2))
		require.True(t, err == nil && out.Result.Replayed, "%v, want the stored answer", err)
	}
	assert.True(t, reads <= 1, "too many keys were read %d times in less than a minute", reads)
}
