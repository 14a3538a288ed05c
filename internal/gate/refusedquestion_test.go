package gate

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// A refusal from memory equals the refusal of the ledger. This is also true if overflow, overage, a subject's cap or
// several items decide.
func TestConsume_RefusedFromMemory_SaysWhatLedgerSays(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.putWide()
	for name, r := range map[string]Request{
		"own units":             request("", "calls", 11),
		"overflow":              wideRequest(0, "flowing", "", 1),
		"overage":               wideRequest(0, "over", "", 7),
		"cap of a subject":      wideRequest(0, "capped", "ann", 4),
		"tenant below subjects": wideRequest(0, "capped", "bob", 11),
		"two meters": {Tenant: "wide", Items: []ledger.Item{
			{Meter: "over", Amount: 1}, {Meter: "flowing", Amount: 3},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first *errcode.Error
			for i := range 5 {
				r := r
				r.Key = strings.ReplaceAll(name, " ", "-") + strconv.Itoa(i)
				known := in.refusals.find(debitOf(&r, &tenantFacts{}, scopeConsume))
				_, err := in.Consume(t.Context(), r)
				got, ok := errors.AsType[*errcode.Error](err)
				require.True(t, ok, "consume %d: %v, want a refusal", i, err)
				if first == nil {
					first = got
				}
				assert.False(t, i == 4 && !known.likely(r.Forwarded != ""), "the ledger was asked five times")
				assert.Equal(t, first.Code, got.Code, "consume %d", i)
				assert.Equal(t, undated(first), undated(got), "consume %d", i)
			}
		})
	}
}

// If an instance grants units of the overflow meter, its next request can spend them.
func TestConsume_RefusedQuestion_TopUpOfOverflowCounts(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	in.putWide()
	for i := range 5 {
		_, err := in.Consume(t.Context(), wideRequest(i, "flowing", "", 1))
		in.expectCode(errcode.CreditsExhausted, "a consume without units", err)
	}
	g := &ledger.Grant{Tenant: "wide", Key: "more", Meter: "credits", Amount: 2, Source: ledger.SourceTopup}
	_, err := in.Grant(t.Context(), g, false)
	require.NoError(t, err)
	_, err = in.Consume(t.Context(), wideRequest(9, "flowing", "", 1))
	in.expectCode("", "a consume after a top-up of the overflow meter", err)
}

// A request whose key was already charged gets its stored answer, although memory refuses other debits with the same
// question.
func TestConsume_RefusedQuestion_StoredKeyIsReplayed(t *testing.T) {
	t.Parallel()
	databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
	in := newInstance(t, databaseURL, patientClient(redisURL))
	other := newInstance(t, databaseURL, patientClient(redisURL))
	in.catalogue()
	in.putWide()
	_, err := other.Consume(t.Context(), wideRequest(100, "over", "", 5))
	in.expectCode("", "a consume elsewhere", err)
	for i := range 10 {
		_, err := in.Consume(t.Context(), wideRequest(i, "over", "", 5))
		in.expectCode(errcode.QuotaExceeded, "a consume of more than there is", err)
		out, err := in.Consume(t.Context(), wideRequest(100, "over", "", 5))
		require.True(t, err == nil && out.Result.Replayed, "%v, want the stored answer", err)
	}
}

// If a tenant alternately spends and is refused, its keys are not read each time, because these reads would cost more
// than the refusals.
func TestConsume_SpendsAndIsRefused_KeysReadOnceASecond(t *testing.T) {
	t.Parallel()
	databaseURL, redisURL := testenv.Postgres(t), testenv.Redis(t)
	in := newInstance(t, databaseURL, patientClient(redisURL))
	other := newInstance(t, databaseURL, patientClient(redisURL))
	in.catalogue()
	in.putWide()
	in.topUp("many", "credits", 100)
	reads := 0
	in.refusals.onKeys = func() { reads++ }
	began := in.now()
	for i := range 40 {
		spender := []*instance{in, other}[i%2]
		_, err := spender.Consume(t.Context(), request("spend-"+strconv.Itoa(i), "credits", 1))
		in.expectCode("", "a consume of one unit", err)
		for k := range 3 {
			_, err := in.Consume(t.Context(), request(strconv.Itoa(10*i+k), "credits", 1000))
			in.expectCode(errcode.CreditsExhausted, "a consume of more than there is", err)
		}
	}
	most := 2 + 2*int(in.now().Sub(began)/spendsAge)
	assert.True(t, reads <= most, "keys were read %d times, want %d at most", reads, most)
}
