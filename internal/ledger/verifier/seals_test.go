package verifier

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// later is a host clock that is ahead. The earlier clock decides whether a day has ended, so the database's clock
// decides.
func later() time.Time { return time.Now().AddDate(5, 0, 0) }

func (b *bundle) sealDay(day time.Time, signer seal.Signer) *seal.Seal {
	b.t.Helper()
	s, err := b.Seal(b.t.Context(), audit.SealOptions{Day: day, Signer: signer, Host: later})
	b.must(err)
	return s
}

// file encodes the seal and parses it again, like a person who has only the file of the seal.
func (b *bundle) file(s *seal.Seal) *seal.Seal {
	b.t.Helper()
	read, err := seal.Parse([]byte(encoded(b, s)), nil)
	b.must(err)
	return read
}

func (b *bundle) check(s *seal.Seal) *audit.SealReport {
	b.t.Helper()
	report, err := b.CheckSeal(b.t.Context(), b.file(s), nil)
	b.must(err)
	return report
}

func (b *bundle) mustCheck(s *seal.Seal) *audit.SealReport {
	b.t.Helper()
	report := b.check(s)
	for _, d := range report.Differences {
		b.t.Errorf("seal of %s: %s", s.Day, d)
	}
	return report
}

// today returns the first instant of the current day by the database's clock.
func (b *bundle) today() time.Time { return b.now().Truncate(24 * time.Hour) }

// nextDay moves the clock to noon of the next day.
func (b *bundle) nextDay() *bundle {
	b.t.Helper()
	now := b.now()
	b.advance(b.today().Add(36 * time.Hour).Sub(now))
	return b
}

func TestSeal_Days_AreChainedAndCheckedByTheNewest(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	private, public, err := seal.NewKey("ledger.example.com")
	b.must(err)
	signer, err := seal.ReadPrivateKey(private)
	b.must(err)
	verifier, err := seal.ReadPublicKey(public)
	b.must(err)
	b.nextDay()
	b.simple("acme", 1000)
	b.simple("idle", 1000)
	mustDo(b, debitOf("acme", "d1", 1))
	mustDo(b, debitOf("idle", "d1", 1))
	b.nextDay()
	first := b.sealDay(time.Time{}, signer)
	assert.True(t, first.Heads == 6 && first.Position == 0 && first.Previous == nil &&
		first.Day == b.today().AddDate(0, 0, -1).Format(time.DateOnly), "first seal: %+v", first)
	mustDo(b, debitOf("acme", "d2", 1))
	b.nextDay()
	second := b.sealDay(time.Time{}, signer)
	assert.True(t, second.Heads == 1 && second.Previous != nil && *second.Previous == first.Tree(),
		"second seal: %+v", second)
	b.nextDay()
	third := b.sealDay(time.Time{}, signer) // without new entries
	assert.Zero(t, third.Heads, "third seal: %+v", third)
	assert.Equal(t, encoded(b, third), encoded(b, b.sealDay(time.Time{}, signer)), "sealed again")
	mustDo(b, debitOf("acme", "d3", 1)) // made after the last sealed day, so no seal covers it
	for i, s := range []*seal.Seal{first, second, third} {
		report := b.mustCheck(s)
		assert.True(t, report.Heads == int64(min(6+i, 7)) && report.Seals == int64(i+1) && report.Balances == 2,
			"%s: %+v", s.Day, report)
		_, err = seal.Parse([]byte(encoded(b, s)), verifier)
		assert.NoError(t, err, "%s", s.Day)
	}
	list, err := b.Seals(t.Context(), 1<<62, 2)
	b.must(err)
	assert.True(t, len(list) == 2 && list[0].Position == 2 && list[1].Root == second.Root, "list: %+v", list)
	got, err := b.SealOfDay(t.Context(), list[1].Day)
	b.must(err)
	assert.Equal(t, encoded(b, second), encoded(b, got), "read back")
}

func encoded(b *bundle, s *seal.Seal) string {
	b.t.Helper()
	text, err := s.Encode()
	b.must(err)
	return string(text)
}

func TestSeal_DaysThatCannotBe_RefusedByName(t *testing.T) {
	t.Parallel()
	b := newBundle(t).nextDay()
	b.simple("acme", 1000)
	mustDo(b, debitOf("acme", "d1", 1))
	b.nextDay()
	today := b.today()
	refused := func(day time.Time, host func() time.Time, want string) {
		t.Helper()
		_, err := b.Seal(t.Context(), audit.SealOptions{Day: day, Host: host})
		reason, ok := Refused(err)
		assert.True(t, ok && strings.Contains(reason, want), "%s: %v; want %q", day.Format(time.DateOnly), err, want)
	}
	refused(today, later, "has not ended; the newest day that can be sealed is "+today.AddDate(0, 0, -1).Format(time.DateOnly))
	refused(today.AddDate(1, 0, 0), later, "has not ended")
	refused(today.AddDate(0, 0, -1), func() time.Time { return today }, "has not ended") // the host's day ends now
	b.sealDay(today.AddDate(0, 0, -1), nil)
	refused(today.AddDate(0, 0, -2), later, "covered by the seal of "+today.AddDate(0, 0, -1).Format(time.DateOnly))
	_, err := b.SealOfDay(t.Context(), today)
	assert.True(t, err != nil && strings.Contains(err.Error(), "is not sealed"), "a day without a seal: %v", err)
}

// An operation that was committed after its day was sealed is in the next seal.
func TestSeal_LateEntries_AreInTheNext(t *testing.T) {
	t.Parallel()
	b := newBundle(t).nextDay()
	b.simple("acme", 1000)
	mustDo(b, debitOf("acme", "d1", 1))
	b.nextDay()
	first := b.sealDay(time.Time{}, nil)
	b.advance(-24 * time.Hour)
	mustDo(b, debitOf("acme", "late", 1)) // its instant is on the sealed day
	b.advance(48 * time.Hour)
	second := b.sealDay(time.Time{}, nil)
	assert.EqualValues(t, 1, second.Heads, "second seal: %+v", second)
	b.mustCheck(first)
	b.mustCheck(second)
}

// The next seal covers the days that were not sealed. If a run of Seal was interrupted, the next run continues it, or
// a run for a later day replaces it.
func TestSeal_AfterInterruptedRuns_CoversAll(t *testing.T) {
	t.Parallel()
	b := newBundle(t).nextDay()
	for i := range 5 {
		b.simple(fmt.Sprint("tenant-", i), 1000)
		mustDo(b, debitOf(fmt.Sprint("tenant-", i), "d1", 1))
	}
	b.nextDay()
	b.exec("CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'interrupted'; END $$")
	b.exec("CREATE TRIGGER no BEFORE INSERT ON seals FOR EACH STATEMENT EXECUTE FUNCTION no()")
	_, err := b.Seal(t.Context(), audit.SealOptions{Host: later})
	require.True(t, err != nil && strings.Contains(err.Error(), "interrupted"), err)
	b.exec("DELETE FROM sealed_heads WHERE tenant_id > 'tenant-2'") // as if the run had ended in the middle
	mustDo(b, debitOf("tenant-1", "d2", 1))
	b.nextDay()
	_, err = b.Seal(t.Context(), audit.SealOptions{Host: later})
	require.True(t, err != nil && strings.Contains(err.Error(), "interrupted"), err)
	b.exec("DELETE FROM sealed_heads WHERE tenant_id > 'tenant-2'")
	b.exec("DROP TRIGGER no ON seals")
	s := b.sealDay(time.Time{}, nil)
	assert.EqualValues(t, 3*5, s.Heads, "balances, terms and plans: %+v", s)
	report := b.mustCheck(s)
	assert.EqualValues(t, 11, report.Entries, "all entries: %+v", report)
}

// A person who can write the tables can remove an operation with all its effects and compute the chains again. verify
// does not detect this. A check with a seal that somebody else keeps detects it. The other cases of the test change
// the sealed rows.
func TestCheckSeal_HistoryRewritten_IsFound(t *testing.T) {
	t.Parallel()
	b := newBundle(t).nextDay()
	b.simple("acme", 1000)
	b.simple("other", 1000)
	mustDo(b, debitOf("acme", "d1", 1))
	mustDo(b, debitOf("other", "d1", 1))
	for _, table := range rewritten {
		b.exec(fmt.Sprintf("CREATE TEMP TABLE before_%[1]s AS SELECT * FROM %[1]s", table))
	}
	mustDo(b, debitOf("acme", "d2", 7))
	b.nextDay()
	first := b.sealDay(time.Time{}, nil)
	mustDo(b, debitOf("other", "d3", 1))
	b.nextDay()
	second := b.sealDay(time.Time{}, nil)
	b.mustCheck(first)
	b.mustCheck(second)
	all := append(rewritten, "sealed_heads", "seals")
	for _, table := range all {
		b.exec(fmt.Sprintf("CREATE TEMP TABLE after_%[1]s AS SELECT * FROM %[1]s", table))
	}
	restore := func(from string, tables []string, where string) {
		t.Helper()
		for _, table := range tables {
			b.exec(fmt.Sprintf("DELETE FROM %s %s", table, where))
			b.exec(fmt.Sprintf("INSERT INTO %s SELECT * FROM %s_%s %s", table, from, table, where))
		}
	}
	for _, c := range []struct {
		name, want string
		do         func()
		clean      bool // the first seal is still valid
	}{
		{"operation removed with its effects and its chain", "entries 1 to 3 were sealed", func() { restore("before", rewritten, "WHERE tenant_id = 'acme'") }, false},
		{"the same, and a later operation in its place", "are not those that were sealed", func() {
			restore("before", rewritten, "WHERE tenant_id = 'acme'")
			mustDo(b, debitOf("acme", "d2b", 6))
		}, false},
		{"the same, and the sealed head", "heads of", func() {
			restore("before", rewritten, "WHERE tenant_id = 'acme'")
			b.exec("UPDATE sealed_heads h SET chain = b.chain FROM balances b WHERE b.tenant_id = h.tenant_id AND h.tenant_id = 'acme'")
		}, false},
		{"a tenant removed", "entries 1 to 2 were sealed", func() { removeTenant(b, "other") }, false},
		{"a sealed head removed", "heads of", func() { b.exec("DELETE FROM sealed_heads WHERE tenant_id = 'acme'") }, false},
		{"a sealed head changed", "are not those that were sealed", func() {
			b.exec("UPDATE sealed_heads SET chain = set_byte(chain, 40, 255 - get_byte(chain, 40)) WHERE tenant_id = 'acme'")
		}, false},
		{"a sealed head without meaning", "cannot be read", func() {
			b.exec("UPDATE sealed_heads SET chain = set_byte(chain, 7, 99) WHERE tenant_id = 'acme'")
		}, false},
		{"a root changed", "together; those of the database have", func() {
			b.exec("UPDATE seals SET root = set_byte(root, 0, 255 - get_byte(root, 0)) WHERE position = 0")
		}, false},
		{"a count changed", "heads with root", func() { b.exec("UPDATE seals SET heads = heads + 1 WHERE position = 1") }, true},
		{"another day sealed", "the database has the seal of", func() { b.exec("UPDATE seals SET day = day + 100 WHERE position = 1") }, true},
		{"the newest seal removed", "is number 2; the database has 1", func() { b.exec("DELETE FROM seals WHERE position = 1") }, true},
		{"a checkpoint changed", "another checkpoint", func() { b.exec("UPDATE seals SET checkpoint = 'x' WHERE position = 1") }, true},
		{"the seals made anew", "together; those of the database have", func() {
			restore("before", rewritten, "WHERE tenant_id = 'acme'")
			b.exec("DELETE FROM sealed_heads")
			b.exec("DELETE FROM seals")
			day, err := time.Parse(time.DateOnly, first.Day)
			b.must(err)
			b.sealDay(day, nil)
			b.sealDay(day.AddDate(0, 0, 1), nil)
		}, false},
	} {
		c.do()
		if c.name == "operation removed with its effects and its chain" {
			b.mustVerify()
		}
		report := b.check(second)
		assert.Contains(t, strings.Join(report.Differences, "\n"), c.want,
			"%s: %q; want a difference with %q", c.name, report.Differences, c.want)
		report = b.check(first)
		assert.Equal(t, c.clean, report.Clean(), "%s, checked with the first seal: %q", c.name, report.Differences)
		restore("after", all, "")
	}
	b.mustCheck(first)
	b.mustCheck(second)
	b.mustVerify()
}

// rewritten are the tables that have the history of balances.
var rewritten = []string{"entries", "balances", "grants", "periods", "checkpoints"}

func removeTenant(b *bundle, tenant string) {
	b.t.Helper()
	for _, table := range rewritten {
		b.exec("DELETE FROM "+table+" WHERE tenant_id = $1", tenant)
	}
}

func TestCheckSeal_OtherDatabase_IsRefused(t *testing.T) {
	t.Parallel()
	b, other := newBundle(t), newBundle(t)
	other.exec("UPDATE database_identity SET database_id = gen_random_uuid()") // test databases are copies of one
	b.nextDay()
	s := b.sealDay(time.Time{}, nil)
	b.mustCheck(s)
	_, err := other.CheckSeal(t.Context(), other.file(s), nil)
	reason, ok := Refused(err)
	assert.True(t, ok && strings.Contains(reason, "another database ("+s.Database), err)
}

// The sealed heads are read in pages. The heads of one balance can be on two pages.
func TestCheckSeal_ManyBalances_AllAreRead(t *testing.T) {
	t.Parallel()
	const tenants, days = 700, 3
	b := newBundle(t).nextDay()
	b.plan("many", 1000, "month", "")
	b.exec(`INSERT INTO tenants (tenant_id, plan, anchor, timezone, created_at) SELECT 't' || i, 'many', $1, 'UTC', $1 FROM generate_series(1, $2::integer) i`, b.now(), tenants)
	b.exec(`INSERT INTO tenant_terms (tenant_id, effective_at, plan, anchor, timezone, initial)
		SELECT 't' || i, $1, 'many', $1, 'UTC', true FROM generate_series(1, $2::integer) i`, b.now(), tenants)
	var last *seal.Seal
	for day := range days {
		var work errgroup.Group
		work.SetLimit(100)
		for i := range tenants {
			work.Go(func() error {
				_, err := pg.Do(t.Context(), b.ledger, debitOf(fmt.Sprint("t", i+1), fmt.Sprint("d", day), 1))
				return err
			})
		}
		b.must(work.Wait())
		b.nextDay()
		last = b.sealDay(time.Time{}, nil)
		agreed := int64(0) // heads of terms and of the plan
		if day == 0 {
			agreed = tenants + 1
		}
		require.True(t, last.Heads == tenants+agreed, "day %d: %d heads", day, last.Heads)
	}
	report := b.mustCheck(last)
	assert.True(t, report.Heads == tenants*(days+1)+1 && report.Balances == tenants && report.Entries == tenants*(days+1), report)
	b.exec("UPDATE entries SET amount = amount + 1 WHERE operation_id = 'd1'")
	report = b.check(last)
	assert.EqualValues(t, tenants, report.Count, "differences")
	assert.Len(t, report.Differences, audit.DifferencesMax, "listed differences")
}

// A damaged journal is not sealed.
func TestSeal_DamagedJournal_IsNotSealed(t *testing.T) {
	t.Parallel()
	b := newBundle(t).nextDay()
	b.simple("acme", 1000)
	mustDo(b, debitOf("acme", "d1", 1))
	b.nextDay()
	for _, damage := range []string{"UPDATE entries SET amount = amount + 1 WHERE operation_id = 'd1'", "DELETE FROM entries WHERE seq = 1"} {
		b.exec(damage)
		_, err := b.Seal(t.Context(), audit.SealOptions{Host: later})
		assert.True(t, err != nil && strings.Contains(err.Error(), "acme/api_calls"), "%s: %v", damage, err)
	}
	list, err := b.Seals(context.Background(), 1<<62, 10)
	assert.True(t, err == nil && len(list) <= 0, "%v, %v", list, err)
}
