package archive

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/ledger/model"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// twins are two ledgers with the same operations. In one ledger old months are archived. The other ledger keeps
// everything.
type twins struct {
	archived, whole *bundle
	log             []string
	at              time.Time // time of both clocks
	border          time.Time // border of the newest archive; zero: no archive yet
	dirs            []string
	made            []string // keys of debits, oldest first
	holds, grants   []string
}

// try runs an operation on both ledgers. If the archived ledger refuses it with the code Archived, the other ledger
// does not run it.
func try[R any](w *twins, name string, op func() ledger.Request[R]) (done bool, err error) {
	ctx := asOf(w.archived.t.Context(), op().ID().Key)
	got, gotErr := pg.Do(ctx, w.archived.Ledger, op())
	if errcode.Of(gotErr) == errcode.Archived {
		w.log = append(w.log, w.at.Format(time.DateTime)+" "+name+": archived")
		if w.border.IsZero() {
			return false, fmt.Errorf("%s: %w, and nothing was archived", name, gotErr)
		}
		return false, nil
	}
	want, wantErr := pg.Do(ctx, w.whole.Ledger, op())
	w.log = append(w.log, fmt.Sprintf("%s %s: %v", w.at.Format(time.DateTime), name, wantErr))
	if errcode.Of(gotErr) != errcode.Of(wantErr) || (gotErr == nil) != (wantErr == nil) {
		return false, fmt.Errorf("%s: %v %w, and where nothing was archived %v %w", name, got, gotErr, want, wantErr)
	}
	return gotErr == nil, w.compare()
}

// compare returns an error if the balances of the two ledgers differ.
func (w *twins) compare() error {
	for _, tenant := range []string{"acme", "beta"} {
		got, err := w.archived.Balances(w.archived.t.Context(), tenant, "")
		if err != nil {
			return err
		}
		want, err := w.whole.Balances(w.whole.t.Context(), tenant, "")
		if err != nil {
			return err
		}
		if a, b := figuresOf(got), figuresOf(want); a != b {
			return fmt.Errorf("balances of %s are\n  %s\nand where nothing was archived\n  %s", tenant, a, b)
		}
	}
	return nil
}

// figuresOf returns, as text, the fields of balances that do not depend on the exact instant of an operation.
func figuresOf(list []ledger.Balance) string {
	var out []string
	for i := range list {
		b := &list[i]
		text := fmt.Sprintf("%s: %+v remaining %d limit %d seq %d period %s", b.Meter, b.Sums, b.Remaining, b.Limit, b.Seq, b.PeriodStart.Format(time.DateOnly))
		for j := range b.Grants {
			text += fmt.Sprintf(" %s=%d", b.Grants[j].Source, b.Grants[j].Remaining)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func (w *twins) pass(by time.Duration) {
	w.at = w.at.Add(by)
	w.archived.clock(w.at)
	w.whole.clock(w.at)
}

// step makes one random step on both ledgers.
func (w *twins) step(t *rapid.T, n int) error {
	tenant := rapid.SampledFrom([]string{"acme", "beta"}).Draw(t, "tenant")
	meter := rapid.SampledFrom([]string{"calls", "credits"}).Draw(t, "meter")
	amount := int64(rapid.IntRange(1, 40).Draw(t, "amount"))
	key := fmt.Sprint("op-", n)
	pick := func(of []string) string {
		return rapid.SampledFrom(append([]string{"acme none"}, of...)).Draw(t, "which")
	}
	returns := rapid.SampledFrom([]ledger.ReturnPolicy{ledger.ReturnForfeit, ledger.ReturnRegrant}).Draw(t, "return")
	switch rapid.IntRange(0, 13).Draw(t, "step") {
	case 0, 1, 2:
		w.pass(time.Duration(rapid.IntRange(1, 20*24).Draw(t, "hours")) * time.Hour)
		return nil
	case 3, 4:
		_, err := try(w, "topup", func() ledger.Request[ledger.GrantResult] {
			g := &ledger.Grant{Tenant: tenant, Key: key, Meter: meter, GrantID: key, Amount: 3 * amount, Source: ledger.SourceTopup}
			if amount%3 == 0 {
				g.ExpiresAt = w.at.Add(time.Duration(amount) * 24 * time.Hour)
			}
			return g
		})
		w.grants = append(w.grants, key)
		return err
	case 5:
		_, err := try(w, "hold", func() ledger.Request[ledger.HoldResult] {
			// The two holds are created some milliseconds apart, and must expire in the same step of the clock. So
			// they expire a quarter of an hour before or after a step.
			ttl := time.Duration(amount)*time.Hour/2 + 15*time.Minute
			return &ledger.Hold{Tenant: tenant, Key: key, HoldID: key, Items: []ledger.Item{{Meter: meter, Amount: amount}}, TTL: ttl}
		})
		w.holds = append(w.holds, tenant+" "+key)
		return err
	case 6:
		of := pick(w.holds)
		_, err := try(w, "end of hold "+of, func() ledger.Request[ledger.HoldResult] {
			owner, id, _ := strings.Cut(of, " ")
			c := &ledger.HoldChange{Tenant: owner, Key: key, HoldID: id, Action: ledger.ActionRelease, Return: returns}
			if amount%2 == 0 {
				c.Action = ledger.ActionCapture
			}
			return c
		})
		return err
	case 7, 8:
		of := pick(w.made)
		_, err := try(w, "refund of "+of, func() ledger.Request[ledger.RefundResult] {
			owner, id, _ := strings.Cut(of, " ")
			return &ledger.Refund{Tenant: owner, Key: key, OperationID: id, Return: returns}
		})
		return err
	case 9:
		of := rapid.SampledFrom(append([]string{"none"}, w.grants...)).Draw(t, "grant")
		if amount%2 == 0 {
			_, err := try(w, "extension of "+of, func() ledger.Request[ledger.Change] {
				x := &ledger.GrantChange{Action: ledger.ExtendGrant, Tenant: tenant, Key: key, GrantID: of, Reason: "paid late"}
				if amount%3 > 0 {
					x.ExpiresAt = w.at.Add(time.Duration(amount) * 10 * 24 * time.Hour)
				}
				return x
			})
			return err
		}
		_, err := try(w, "void of "+of, func() ledger.Request[ledger.Change] {
			return &ledger.GrantChange{Action: ledger.VoidGrant, Tenant: tenant, Key: key, GrantID: of, Reason: "by mistake"}
		})
		return err
	default:
		done, err := try(w, fmt.Sprint("debit of ", amount, " ", meter), func() ledger.Request[ledger.DebitResult] {
			return &ledger.Debit{Tenant: tenant, Key: key, Items: []ledger.Item{{Meter: meter, Amount: amount}}}
		})
		if done {
			w.made = append(w.made, tenant+" "+key)
		}
		return err
	}
}

// archive archives all months that may be archived, or one month less. Reads of the time since the border must return
// the same answers as before.
func (w *twins) archive(t *rapid.T, begin journal.Month, dir string) error {
	b := w.archived
	before := journal.MonthOf(w.at.Add(-keysKept)) - journal.Month(rapid.IntRange(0, 1).Draw(t, "keep"))
	if before <= begin || !before.Start().After(w.border) {
		return nil
	}
	asked := map[string]answers{}
	for _, tenant := range []string{"acme", "beta"} {
		asked[tenant] = b.ask(tenant, before.Start())
	}
	w.log = append(w.log, fmt.Sprintf("%s archive before %s", w.at.Format(time.DateTime), before))
	if _, err := Run(b.t.Context(), b.options(before, dir)); err != nil {
		return fmt.Errorf("archive before %s: %w", before, err)
	}
	w.border, w.dirs = before.Start(), append(w.dirs, dir)
	for tenant, was := range asked {
		is := b.ask(tenant, before.Start())
		forgetWhenMade(was)
		forgetWhenMade(is)
		if !assert.ObjectsAreEqual(was, is) {
			return fmt.Errorf("%s before the archive of %s: %+v\nafter it: %+v", tenant, before, was, is)
		}
	}
	return b.verify(b.t.Context())
}

// forgetWhenMade removes the creation times of grants from answers. If a period is not yet written, each read creates
// its grant in memory with another creation time.
func forgetWhenMade(a answers) {
	for _, answer := range a {
		if balance, ok := answer.(*ledger.Balance); ok {
			for i := range balance.Grants {
				balance.Grants[i].CreatedAt = time.Time{}
			}
		}
	}
}

// Random programs run on two ledgers, and one ledger is archived at random instants. Operations have the same results
// on both ledgers, and the balances are the same, except for operations that name archived rows. At the end, verify
// finds no difference, and every archive passes its check.
func TestArchive_RandomInstants_NothingTellsThemApart(t *testing.T) {
	t.Parallel()
	steps := model.SoakSteps(t, "QUOTASVC_SOAK_ARCHIVE_STEPS")
	model.RunPrograms(t, 1, steps, func(rt *rapid.T) int {
		begin := journal.MonthOf(time.Now()) - 8
		w := &twins{archived: newBundle(t, begin), whole: newBundle(t, begin), at: begin.Start().Add(30 * time.Hour)}
		for _, b := range []*bundle{w.archived, w.whole} {
			defer b.close()
			b.catalogue()
			b.tenant("acme")
			b.tenant("beta")
		}
		w.pass(0)
		n := 0
		fail := func(err error) {
			require.NoError(rt, err, "%s\n", strings.Join(w.log, "\n"))
		}
		for ; n < 60 && w.at.Before(time.Now().AddDate(0, 0, -21)); n++ {
			fail(w.step(rt, n))
			if rapid.IntRange(0, 9).Draw(rt, "archive") == 0 {
				fail(w.archive(rt, begin, filepath.Join(t.TempDir(), fmt.Sprint("a", n))))
			}
		}
		fail(w.archive(rt, begin, filepath.Join(t.TempDir(), "last")))
		fail(w.archived.verify(t.Context()))
		for _, dir := range w.dirs {
			report, err := w.archived.checkArchive(dir)
			fail(err)
			if !report.Clean() {
				fail(fmt.Errorf("archive %s: %v", dir, report.Differences))
			}
		}
		return n
	})
}
