package gate

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
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
		in.consumes(errcode.CreditsExhausted, "a consume without units", wideRequest(i, "flowing", "", 1))
	}
	g := &ledger.Grant{Tenant: "wide", Key: "more", Meter: "credits", Amount: 2, Source: ledger.SourceTopup}
	_, err := in.Grant(t.Context(), g, false)
	require.NoError(t, err)
	in.consumes("", "a consume after a top-up of the overflow meter", wideRequest(9, "flowing", "", 1))
}

// If a tenant alternately spends and is refused, its keys are not read each time, because these reads would cost more
// than the refusals.
func TestConsume_SpendsAndIsRefused_KeysReadOnceASecond(t *testing.T) {
	t.Parallel()
	in, other := newTwo(t)
	in.catalogue()
	in.putWide()
	in.topUp("many", "credits", 100)
	reads := 0
	in.refusals.onKeys = func() { reads++ }
	began := in.now()
	for i := range 40 {
		spender := []*instance{in, other}[i%2]
		spender.consumes("", "a consume of one unit", request("spend-"+strconv.Itoa(i), "credits", 1))
		for k := range 3 {
			req := request(strconv.Itoa(10*i+k), "credits", 1000)
			in.consumes(errcode.CreditsExhausted, "a consume of more than there is", req)
		}
	}
	most := 2 + 2*int(in.now().Sub(began)/spendsAge)
	assert.True(t, reads <= most, "keys were read %d times, want %d at most", reads, most)
}
