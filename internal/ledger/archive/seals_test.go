package archive

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// A seal that is older than an archive can still be checked against the entries that the archive has not removed. The
// sealed heads of archived days are removed with their months.
func TestArchive_SealedDays_AreCheckedAfterwards(t *testing.T) {
	t.Parallel()
	now := journal.MonthOf(time.Now())
	begin := now - 4
	b := newBundle(t, begin).catalogue()
	b.tenant("acme")
	b.tenant("rare")
	b.topup("acme", 1000)
	b.topup("rare", 10)
	v, err := verifier.Open(t.Context(), verifier.Config{Target: namedsql.Target(testenv.OnCitus()), DatabaseURL: b.url, Log: b.logger(), Metrics: prometheus.NewRegistry()})
	b.check(err)
	t.Cleanup(func() { b.check(v.Stop(context.Background())) })
	var seals []*seal.Seal
	for m := begin; m <= now; m++ {
		b.clock(m.Start().Add(12 * time.Hour))
		b.debit("acme", "calls", 10)
		b.clock(m.Start().Add(36 * time.Hour))
		s, err := v.Seal(t.Context(), audit.SealOptions{Day: m.Start(), Host: func() time.Time { return time.Now().AddDate(9, 0, 0) }})
		b.check(err)
		seals = append(seals, s)
	}
	report := func(s *seal.Seal) *audit.SealReport {
		t.Helper()
		out, err := v.CheckSeal(t.Context(), s, nil)
		b.check(err)
		return out
	}
	last := seals[len(seals)-1]
	r := report(last)
	require.True(t, r.Clean() && r.Archived <= 0, "before: %+v", r)
	b.clock(time.Now())
	heads := b.count("SELECT count(*) FROM sealed_heads")
	out := b.run(b.options(begin+3, filepath.Join(t.TempDir(), "a")))
	exported := out.Manifest.file("sealed_heads.parquet").Rows
	left := b.count("SELECT count(*) FROM sealed_heads")
	assert.True(t, exported != 0 && left == heads-exported, "%d of %d heads exported, %d left", exported, heads, left)
	for _, s := range seals {
		r = report(s)
		assert.True(t, r.Clean(), "seal of %s after the archive: %q", s.Day, r.Differences)
	}
	b.debit("acme", "calls", 10)
	b.debit("rare", "credits", 1)
	b.clock(time.Now().AddDate(0, 0, 3)) // works also on the first day of a month
	next, err := v.Seal(t.Context(), audit.SealOptions{Host: func() time.Time { return time.Now().AddDate(9, 0, 0) }})
	b.check(err)
	r = report(next)
	assert.True(t, r.Clean() && next.Heads == 2 && r.Entries != 0, "next: %+v, %+v", next, r)
	b.exec("UPDATE entries SET operation_id = 'x' WHERE seq = (SELECT min(seq) FROM entries WHERE tenant_id = 'acme' AND meter = 'calls') AND meter = 'calls'")
	r = report(next)
	require.False(t, r.Clean(), "a kept entry was changed")
	assert.Contains(t, r.Differences[0], "acme/calls")
}
