package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/model"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// Past contains functions of package history, which imports package pg. So main_test.go, which is in package pg_test,
// sets them.
var Past struct {
	Balance   func(l *Ledger, k ledger.BalanceKey, at time.Time) (*ledger.Balance, error)
	Statement func(l *Ledger, k ledger.BalanceKey, at time.Time) (*PastStatement, error)
}

// PastStatement has the fields of a statement of package history that are compared here.
type PastStatement struct {
	ledger.Sums

	Overflow   int64
	Plan       string
	Start, End time.Time
	Closed     bool
	Closing    int64
	Lines      ledger.Sums // the sum of the lines of the statement
}

// step returns a random next step of the tenant. The caller runs it at the same time as the steps of other tenants.
func (s *life) step() func() error {
	t := s.T
	plan := func() string { return rapid.SampledFrom(model.Plans).Draw(t, "plan") }
	reader := rapid.IntRange(0, 1).Draw(t, "reader")
	do := func() error { return nil }
	switch rapid.IntRange(0, 15).Draw(t, "step") {
	case 0, 1:
		by := time.Duration(rapid.IntRange(1, 1800).Draw(t, "seconds")) * time.Second
		do = func() error { return s.rewind(by) }
	case 2:
		by := time.Duration(rapid.IntRange(1, 5*3600).Draw(t, "long")) * time.Second
		do = func() error { return s.rewind(by) }
	case 3:
		do = func() error { return s.roll(reader + 1) }
	case 4:
		of, meters, apply := plan(), s.DrawTerms(), s.DrawApply()
		do = func() error { return s.newVersion(of, meters, apply) }
	case 5:
		change := s.DrawChange()
		do = func() error { return s.newPlan(change) }
	case 6:
		suspended := rapid.Bool().Draw(t, "suspended")
		do = func() error { s.suspend(suspended); return nil }
	case 7:
		if len(s.past) > 0 {
			when := rapid.IntRange(0, len(s.past)-1).Draw(t, "when")
			do = func() error { return s.remember(reader+1, s.past[when]) }
		}
	default:
		do = s.group()
	}
	return func() error {
		s.steps++
		if err := do(); err != nil {
			return err
		}
		return s.compare(reader)
	}
}

// roll runs a roll, which processes the balances of all tenants.
func (s *life) roll(n int) error {
	_, err := persist(s, n, func(l *Ledger) (Roll, error) {
		// If the instance is killed, the next roll continues this one.
		return l.RunRoll(context.Background(), nil, func(Roll) {})
	})
	s.logf("roll")
	if err != nil {
		err = errors.Join(err, s.misplaced())
	}
	return err
}

// misplaced returns an error that lists the balances, of all tenants, whose open period does not begin at the end of
// the last closed period.
func (s *life) misplaced() error {
	rows, err := s.db.Query(context.Background(), `SELECT b.tenant_id, b.meter, b.subject, row_to_json(b)::text, json_agg(p ORDER BY p.period_start)::text
		FROM balances b JOIN periods p USING (tenant_id, meter, subject)
		GROUP BY b.tenant_id, b.meter, b.subject, b.period_start, b.* HAVING max(p.period_start) >= b.period_start OR max(p.period_end) <> b.period_start`)
	if err != nil {
		return err
	}
	var tenant, meter, subject, balance, periods string
	var all []error
	_, err = pgx.ForEachRow(rows, []any{&tenant, &meter, &subject, &balance, &periods}, func() error {
		all = append(all, fmt.Errorf("%s/%s/%s is\n    %s\n    after %s", tenant, meter, subject, balance, periods))
		return nil
	})
	return errors.Join(append(all, err)...)
}

// remember reads a balance as of a past instant. Its sums must equal the sums that were read at that instant.
func (s *life) remember(n int, was moment) error {
	b, err := persist(s, n, func(l *Ledger) (*ledger.Balance, error) {
		return Past.Balance(l, s.named(was.k), s.stored(was.at))
	})
	if errcode.Of(err) == errcode.MeterNotInPlan && was.figures == figures([9]int64{}) {
		return nil // the plan has no such meter, and nothing was ever granted
	}
	if err != nil {
		return fmt.Errorf("balance %v as of %s: %w", was.k, was.at, err)
	}
	now := figures([...]int64{b.Opening, b.Granted, b.Refunded, b.Used, b.Expired, b.Adjusted, b.Overage, b.Held, b.Remaining})
	if now != was.figures {
		return fmt.Errorf("balance %v as of %s\n  was read then as %s\n  and is read now as  %s", was.k, was.at, was.figures, now)
	}
	return nil
}

// end is the last step of a program: it compares all statements with the models and verifies the tenant.
func (s *life) end(v *verifier.Verifier) error {
	if err := s.look(); err != nil {
		return err
	}
	for _, k := range s.keys() {
		if err := s.compareStatements(k); err != nil {
			return err
		}
	}
	if err := s.compareTrail(); err != nil {
		return err
	}
	report, err := v.Verify(context.Background(), verifier.Options{Tenant: s.tenant})
	if err != nil {
		return err
	}
	if !report.Clean() {
		return fmt.Errorf("verify: %v", report.Differences)
	}
	for meter, n := range report.Totals {
		if n.Issued+n.Refunded+n.Adjusted != n.Used+n.Expired+n.Remaining+n.Held {
			return fmt.Errorf("meter %s does not add up: %+v", meter, n)
		}
	}
	return nil
}

// compareTrail compares the audit log with the journal: each operation of an administrator that must be audited has
// one line in the audit log.
func (s *life) compareTrail() error {
	rows, err := s.db.Query(context.Background(), `SELECT coalesce(e.operation_id, a.request_id) || ': ' || coalesce(e.kind, 'no operation') || ', ' || coalesce(a.lines, 'no line')
		FROM (SELECT operation_id, kind FROM entries WHERE tenant_id = $1 AND line = 1 AND actor = $2
		      AND kind NOT IN ('debit', 'overage', 'hold', 'capture', 'release', 'extend', 'denial')) AS e
		FULL JOIN (SELECT request_id, string_agg(action, ', ') AS lines FROM audit WHERE tenant_id = $1 GROUP BY request_id) AS a ON a.request_id = e.operation_id
		WHERE e.operation_id IS NULL OR a.lines IS NULL OR a.lines <> CASE
			WHEN e.kind IN ('grant', 'schedule') THEN 'grant.create' WHEN e.kind = 'void' THEN 'grant.void' WHEN e.kind = 'extend_grant' THEN 'grant.extend'
			WHEN e.kind IN ('adjust_up', 'adjust_down') THEN 'adjustment.create' ELSE 'refund.create' END`, s.tenant, model.Administrator)
	if err != nil {
		return err
	}
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("audit log and journal differ: %s", strings.Join(wrong, "; "))
	}
	return err
}

// compareStatements reads the statements of all periods of a balance, newest first, and checks them with
// checkStatement. The closed periods must be the closed periods of a model.
func (s *life) compareStatements(k ledger.BalanceKey) error {
	var got []string
	next := (*PastStatement)(nil)
	for at := s.stored(s.Now); ; at = next.Start.Add(-time.Microsecond) {
		b, err := persist(s, len(got), func(l *Ledger) (*PastStatement, error) {
			return Past.Statement(l, s.named(k), at)
		})
		if errcode.Of(err) == errcode.MeterNotInPlan && s.able[0].Empty(k) {
			return nil
		}
		if errcode.Of(err) == errcode.NotFound {
			break
		}
		if err != nil {
			return fmt.Errorf("statement of %v at %s: %w", k, at, err)
		}
		if err := checkStatement(b, next); err != nil {
			return fmt.Errorf("statement of %v at %s: %w: %+v", k, at, err, b)
		}
		if b.Closed {
			got = append(got, model.PeriodText(strings.TrimPrefix(b.Plan, s.tenant+"-"), b.Start.Add(s.ahead), b.End.Add(s.ahead), [...]int64{
				b.Opening, b.Granted, b.Amended, b.Refunded, b.Used, b.Expired, b.Adjusted, b.Overage, b.Overflow, b.Held, b.Closing,
			}))
		}
		next = b
	}
	slices.Reverse(got)
	for _, m := range s.able {
		if slices.Equal(m.ClosedPeriods(k), got) {
			return nil
		}
	}
	return fmt.Errorf("the closed periods of %v are\n  %s\nand the model's\n  %s", k, strings.Join(got, "\n  "), strings.Join(s.able[0].ClosedPeriods(k), "\n  "))
}

// checkStatement returns an error if the sums of b do not add up to its closing amount, or if its lines do not add up
// to its sums. It also returns an error if next does not begin with the closing amount of b.
func checkStatement(b, next *PastStatement) error {
	sum := b.Lines
	switch {
	case b.Opening+b.Granted+b.Amended+b.Refunded-b.Used-b.Expired+b.Adjusted != b.Closing:
		return errors.New("the statement does not foot")
	case sum.Granted != b.Granted || sum.Refunded != b.Refunded || sum.Used != b.Used || sum.Expired != b.Expired || sum.Adjusted != b.Adjusted || sum.Overage != b.Overage:
		return errors.New("the lines do not add up to the statement")
	case next != nil && (next.Opening != b.Closing || !next.Start.Equal(b.End)):
		return fmt.Errorf("the next statement does not continue it: %+v", next)
	}
	return nil
}

// The random programs run on the real ledger, for several tenants at a time. They have all operations, concurrent and
// repeated requests to two instances, batches, reads, dry runs, and balances of the past. Time passes, plans get new
// versions, tenants change plans and are suspended, and rolls run. Meanwhile answers to COMMIT are lost, connections
// break and instances are killed. The test fails unless there is an order of the requests in which the model gives
// the same answers. The model has no SQL, batches, instances or faults. QUOTASVC_SOAK_SERVICE_STEPS is the number of
// steps of a soak. A step is a request, or a change such as a roll or a new version of a plan.
func TestService_Programs_AreExplainedByModel(t *testing.T) {
	t.Parallel()
	wanted := model.SoakSteps(t, "QUOTASVC_SOAK_SERVICE_STEPS")
	const tenants = 6
	rounds := 5
	if wanted > 0 {
		rounds = 40
	}
	b := newBundle(t).meter(model.Meters...)
	checker := openVerifier(t, b.url, namedsql.Target(testenv.OnCitus()))
	f := startFleet(t, b.url)
	conns := make([]*pgx.Conn, tenants)
	for i := range conns {
		conns[i] = b.another().db
	}
	calm := f.disturb()
	signedUp := 0
	model.RunPrograms(t, 6, wanted, func(rt *rapid.T) int {
		lives := make([]*life, tenants)
		for i := range lives {
			signedUp++
			var err error
			lives[i], err = live(rt, conns[i], fmt.Sprint("t", signedUp), f)
			require.NoError(rt, err)
		}
		together := func(do func(s *life) func() error) {
			var wg sync.WaitGroup
			errs := make([]error, len(lives))
			for i, s := range lives {
				run := do(s)
				wg.Go(func() { errs[i] = run() })
			}
			wg.Wait()
			for i, err := range errs {
				if err != nil {
					// Log now: the same concurrency may not occur again when rapid repeats the program.
					t.Logf("tenant %s\n%s\n%v", lives[i].tenant, strings.Join(lives[i].log, "\n"), err)
					rt.Fatal(err)
				}
			}
		}
		for range rounds {
			together((*life).step)
		}
		together(func(s *life) func() error { return func() error { return s.end(checker) } })
		steps := 0
		for _, s := range lives {
			steps += s.steps
		}
		return steps
	})
	require.NoError(t, calm())
	t.Logf("%d tenants, %+v", signedUp, f.counts)
	b.mustVerify()
	b.wantNoDeadlocks()
}
