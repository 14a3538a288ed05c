package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// runUntil starts an archive run with o. It kills the run when the run's progress reports step for the nth time. It
// reports whether the run ended before that.
func (b *bundle) runUntil(o Options, step string, nth int) (ended bool) {
	b.t.Helper()
	ctx, kill := context.WithCancel(b.t.Context())
	defer kill()
	seen := 0
	o.Progress = func(p Progress) {
		if strings.HasPrefix(p.Step, step) {
			if seen++; seen == nth {
				kill()
			}
		}
	}
	_, err := Run(ctx, o)
	require.False(b.t, err != nil && !errors.Is(err, context.Canceled), err)
	return err == nil
}

func TestArchive_KilledAtEachStep_NextRunGoesOn(t *testing.T) {
	t.Parallel()
	b, begin := year(t)
	border := (begin + 3).Start()
	before := b.ask("acme", border)
	entries := b.count("SELECT count(*) FROM entries WHERE month < $1", border)
	o := b.options(begin+3, filepath.Join(t.TempDir(), "a"))
	kills := 1
	for ; !b.runUntil(o, "", kills); kills++ {
		require.True(t, kills <= 100, "it does not come to an end")
		if kills%5 == 0 {
			require.Equal(t, before, b.ask("acme", border), "after %d kills", kills)
			b.check(b.verify(t.Context()))
		}
	}
	assert.True(t, kills >= 8, "it was killed only %d times", kills)
	report := b.checkedArchive(o.Dir)
	assert.True(t, report.Clean() && report.Entries == entries,
		"%d of %d entries, %v", report.Entries, entries, report.Differences)
	assert.Zero(t, b.count("SELECT count(*) FROM entries WHERE month < $1", border), "archived entries are left")
	names, err := o.dir().names()
	assert.True(t, err == nil && !strings.Contains(strings.Join(names, " "), partial), "%v (%v)", names, err)
	assert.Equal(t, before, b.ask("acme", border))
}

// PostgreSQL keeps the lock of a killed run until it notices that the connection is closed. The next run waits for the
// lock for some seconds only, because another run may still be working.
func TestArchive_OtherRun_WaitedForAWhile(t *testing.T) {
	t.Parallel()
	b, begin := year(t)
	lock := func(function string) { b.exec("SELECT pg_" + function + "(7162931505)") }
	o := b.options(begin+2, filepath.Join(t.TempDir(), "a"))
	lock("advisory_lock")
	require.ErrorContains(t, errOf(Run(t.Context(), o)), "another archive run works on this database")
	released := make(chan struct{})
	go func() {
		defer close(released)
		testenv.Eventually(t, func() bool {
			return b.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'quotasvc-archive'
				AND query LIKE '%pg_try_advisory_lock%'`) > 0
		}, "the run asks for the lock")
		lock("advisory_unlock")
	}()
	_, err := Run(t.Context(), o)
	<-released
	b.check(err)
}

func (o *Options) dir() directory { return directory(o.Dir) }

// exported returns a ledger, and the options of an archive run that was killed after all files were complete. Nothing
// is removed from the database yet.
func exported(t *testing.T) (*bundle, Options) {
	t.Helper()
	b, begin := year(t)
	o := b.options(begin+2, filepath.Join(t.TempDir(), "a"))
	require.False(t, b.runUntil(o, "remove", 1), "it was not killed")
	return b, o
}

func TestArchive_FileAlteredOrMissing_NothingRemoved(t *testing.T) {
	t.Parallel()
	b, o := exported(t)
	rows := b.count("SELECT count(*) FROM entries")
	path := filepath.Join(o.Dir, "periods.parquet")
	good, err := os.ReadFile(path)
	b.check(err)
	altered := append([]byte(nil), good...)
	altered[len(altered)/2] ^= 1
	for what, content := range map[string][]byte{"altered": altered, "truncated": good[:len(good)-1], "missing": nil} {
		if content == nil {
			b.check(os.Remove(path))
		} else {
			b.check(os.WriteFile(path, content, 0o600))
		}
		assert.ErrorContains(t, errOf(Run(t.Context(), o)), "periods.parquet", what)
		report := b.checkedArchive(o.Dir)
		require.False(t, report.Clean(), what)
		assert.Contains(t, report.Differences[0], "periods.parquet", what)
	}
	assert.Equal(t, rows, b.count("SELECT count(*) FROM entries"), "entries that are left")
	b.check(os.WriteFile(path, good, 0o600))
	b.run(o)
}

func TestArchive_EntriesAddedAfterExport_MonthStays(t *testing.T) {
	t.Parallel()
	b, o := exported(t)
	month := (o.Before - 1).Start()
	b.exec(`INSERT INTO entries (tenant_id, operation_id, line, month, seq, kind, meter, subject, period_start, grant_id, source, amount, remaining_after,
		item, created_at) VALUES ('late', 'k', 1, $1::date, 1, 'debit', 'calls', '', $1::date, '', '', 1, 1, 0, $1::date)`, month)
	rows := b.count("SELECT count(*) FROM entries WHERE month = $1", month)
	assert.ErrorContains(t, errOf(Run(t.Context(), o)), (o.Before - 1).String())
	assert.Equal(t, rows, b.count("SELECT count(*) FROM entries WHERE month = $1", month), "entries of that month")
}

func TestArchive_VerifyFindsDifferences_NothingExported(t *testing.T) {
	t.Parallel()
	b, begin := year(t)
	o := b.options(begin+2, filepath.Join(t.TempDir(), "a"))
	drift := errors.New("drift")
	o.Verify = func(context.Context) error { return drift }
	assert.ErrorIs(t, errOf(Run(t.Context(), o)), drift, "got")
	m, _, err := ReadManifest(o.Dir)
	assert.True(t, err == nil && !m.Complete && len(m.Files) <= 0 && b.count("SELECT count(*) FROM archives") <= 0,
		"%+v, %v", m, err)
	assert.ErrorContains(t, errOf(b.checkArchive(o.Dir)), "not complete", "check of an incomplete archive")
}

func TestArchive_OtherArchiveInDirectory_Refused(t *testing.T) {
	t.Parallel()
	b, o := exported(t)
	for what, change := range map[string]func(*Options){
		"other month": func(o *Options) { o.Before++ },
		"other database": func(*Options) {
			b.exec("UPDATE database_identity SET database_id = gen_random_uuid()")
		},
	} {
		other := o
		change(&other)
		var refusal *Refusal
		assert.ErrorAs(t, errOf(Run(t.Context(), other)), &refusal, "%s: want a refusal", what)
	}
	assert.ErrorContains(t, errOf(b.checkArchive(o.Dir)), "another database", "check with another database")
	assert.ErrorContains(t, errOf(b.checkArchive(t.TempDir())), manifestName, "check of an empty directory")
}

// Archives from versions of the service without actors have no column actor. They must also pass the check.
func TestCheck_FilesWithoutActors_Clean(t *testing.T) {
	t.Parallel()
	now := journal.MonthOf(time.Now())
	b := newBundle(t, now-5).catalogue()
	b.tenant("acme")
	debit := func(n int) {
		t.Helper()
		_, err := pg.Do(t.Context(), b.Ledger, &ledger.Debit{Tenant: "acme", Key: b.key(), Items: []ledger.Item{{Meter: "calls", Amount: int64(n)}}})
		require.NoError(t, err)
	}
	for m := range 5 {
		b.clock((now - 5 + journal.Month(m)).Start().Add(24 * time.Hour))
		debit(m + 1)
	}
	b.clock(time.Now())
	debit(9)
	o := b.options(now-3, filepath.Join(t.TempDir(), "a"))
	checkpoint := o.Checkpoint
	o.Checkpoint = func(ctx context.Context, border time.Time) error {
		err := checkpoint(ctx, border)
		b.exec("ALTER TABLE entries DROP COLUMN actor")
		return err
	}
	b.run(o)
	b.exec(`ALTER TABLE entries ADD COLUMN actor text COLLATE "C"`)
	report := b.checkedArchive(o.Dir)
	assert.True(t, report.Clean() && report.Entries != 0, "%d entries, %v", report.Entries, report.Differences)
}

// The check compares the end of an archive with the database's record, and each archive with the archive before it.
func TestCheck_DatabaseContinuesElsewhere_NamesBalance(t *testing.T) {
	t.Parallel()
	b, begin := year(t)
	dirs := []string{filepath.Join(t.TempDir(), "1"), filepath.Join(t.TempDir(), "2")}
	for i, dir := range dirs {
		b.run(b.options(begin+2+journal.Month(i), dir))
	}
	for _, dir := range dirs {
		report := b.checkedArchive(dir)
		assert.True(t, report.Clean() && report.Entries > 0, "%s: %+v", dir, report)
	}
	for what, sql := range map[string]string{
		"head":      `UPDATE checkpoints SET chain = set_byte(chain, 20, get_byte(chain, 20) # 1) WHERE archived AND tenant_id = 'beta' AND meter = 'calls' AND octet_length(chain) > 20`,
		"remaining": `UPDATE checkpoints SET remaining = remaining + 1 WHERE archived AND tenant_id = 'beta' AND meter = 'calls'`,
		"end":       `DELETE FROM checkpoints WHERE archived AND tenant_id = 'beta' AND meter = 'calls'`,
	} {
		b.exec("CREATE TABLE saved AS SELECT * FROM checkpoints")
		b.exec(sql)
		report := b.checkedArchive(dirs[1])
		assert.True(t, !report.Clean() && strings.Contains(report.Differences[0], "beta/calls"),
			"%s: %v", what, report.Differences)
		b.exec("DELETE FROM checkpoints; INSERT INTO checkpoints SELECT * FROM saved; DROP TABLE saved")
	}
	b.exec("UPDATE archives SET manifest = '\\x00' WHERE month = $1", begin.Start())
	report := b.checkedArchive(dirs[0])
	require.False(t, report.Clean(), "manifest")
	assert.Contains(t, report.Differences[0], begin.String(), "manifest")
}
