package verifier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// walker makes random operations and changes of terms.
type walker struct {
	*bundle
	*rand.Rand

	plans []string
	made  map[string][]string // debits and captures by tenant
	holds map[string][]string
	log   map[string][]string
}

func pick[V any](w *walker, of []V) V { return of[w.IntN(len(of))] }

func try[R any](w *walker, tenant string, op ledger.Request[R], what ...any) {
	w.t.Helper()
	_, err := pg.Do(w.t.Context(), w.ledger, op)
	w.log[tenant] = append(w.log[tenant], fmt.Sprintln(append(what, w.now(), err)...))
	code := errcode.Of(err)
	require.False(w.t, code == errcode.Internal || code == errcode.Unavailable, "%v: %v", what, err)
}

// step makes one operation or change of terms. Several of the operations are refused.
func (w *walker) step(tenant, key string) {
	w.t.Helper()
	amount := int64(1 + w.IntN(60))
	switch w.IntN(9) {
	case 0, 1:
		w.made[tenant] = append(w.made[tenant], key)
		try(w, tenant, debitOf(tenant, key, amount), "debit", key, amount)
	case 2, 3:
		h := holdOf(tenant, key, key, amount)
		h.TTL = 24 * time.Hour
		w.holds[tenant] = append(w.holds[tenant], key)
		try(w, tenant, h, "hold", key, amount)
	case 4:
		if len(w.made[tenant]) > 0 {
			r := &ledger.Refund{
				Tenant: tenant, Key: key, OperationID: pick(w, w.made[tenant]), Amount: amount,
				Return: pick(w, []ledger.ReturnPolicy{"", ledger.ReturnRegrant}),
			}
			try(w, tenant, r, "refund", r.OperationID, amount, r.Return)
		}
	case 5:
		if len(w.holds[tenant]) > 0 {
			h := &ledger.HoldChange{Tenant: tenant, Key: key, HoldID: pick(w, w.holds[tenant])}
			h.Action = ledger.ActionRelease
			if w.IntN(2) == 0 {
				h.Action, h.Items = ledger.ActionCapture, []ledger.Item{{Meter: "api_calls", Amount: amount}}
				w.made[tenant] = append(w.made[tenant], key)
			}
			try(w, tenant, h, h.Action, h.HoldID, amount)
		}
	case 6:
		a := &ledger.Adjust{Tenant: tenant, Key: key, Meter: "api_calls", Reason: "test"}
		a.Amount = pick(w, []int64{amount, -amount})
		try(w, tenant, a, "adjust", a.Amount)
	default:
		plan, columns := pick(w, w.plans), pick(w, []string{
			"", "", "prorate = true", "usage = 'reset'", "usage = 'add'", `overrides = '{"api_calls": 33}'`,
			"timezone = 'Asia/Kolkata'", "anchor = anchor + interval '100 minutes'", "immediate = false",
		})
		w.agree(tenant, plan, columns)
		w.log[tenant] = append(w.log[tenant], fmt.Sprintln("change", plan, columns, w.now()))
	}
}

// Tenants use units and change their terms at random. The rows agree with the journal after every step, whether verify
// reads all of it or what is new.
func TestVerify_RandomChanges_Agree(t *testing.T) {
	t.Parallel()
	const tenants, steps = 12, 24
	w := &walker{
		bundle: newBundle(t).changePlans(), Rand: rand.New(rand.NewPCG(32, 1)),
		made: map[string][]string{}, holds: map[string][]string{}, log: map[string][]string{},
	}
	w.plan("hourly", 9, "hour", "overage_policy = 'allow', overage_cap = 20")
	w.plan("rolling", 50, "day", "rollover_max = 70")
	w.plans = []string{
		"small", "large", "tiny", "daily", "local", "capped", "dayover", "owed", "trial", "gift", "none", "hourly",
		"rolling",
	}
	for i := range tenants {
		w.signUp(fmt.Sprint("t", i), pick(w, w.plans))
	}
	for i := range steps {
		for j := range tenants {
			w.step(fmt.Sprint("t", j), fmt.Sprint("k", i))
		}
		for _, whole := range []int64{1 << 40, 0} {
			w.wholeUpTo = whole
			for _, d := range w.report().Differences {
				t.Errorf("step %d (whole journal: %t): %v, after %v", i, whole > 0, d, w.log[d.Tenant])
			}
		}
		if t.Failed() {
			return
		}
		w.advance(time.Duration(w.IntN(60)) * time.Minute) // at most a day in all: no hold ends
	}
}
