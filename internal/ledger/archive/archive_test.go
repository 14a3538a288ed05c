package archive

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

// year returns a ledger with six months of use: the present month and the five months before.
func year(t *testing.T) (b *bundle, begin journal.Month) {
	t.Helper()
	now := journal.MonthOf(time.Now())
	begin = now - 5
	b = newBundle(t, begin)
	b.catalogue()
	for _, tenant := range []string{"acme", "beta"} {
		b.tenant(tenant)
		b.topup(tenant, 1000)
	}
	for m := begin; m <= now; m++ {
		if m == now {
			b.clock(time.Now())
		} else {
			b.clock(m.Start().Add(24 * time.Hour))
		}
		b.debit("beta", "calls", 10)
		b.debit("acme", "calls", 10)
		debit := b.debit("acme", "credits", 20)
		do(b, &ledger.Refund{Tenant: "acme", Key: b.key(), OperationID: debit, Amount: 5})
		hold := "hold-" + m.String()
		do(b, &ledger.Hold{Tenant: "acme", Key: b.key(), HoldID: hold, Items: []ledger.Item{{Meter: "calls", Amount: 7}}, TTL: time.Hour})
		do(b, &ledger.HoldChange{Tenant: "acme", Key: b.key(), HoldID: hold, Action: ledger.ActionCapture, Items: []ledger.Item{{Meter: "calls", Amount: 3}}, Final: true})
	}
	return b, begin
}

func TestArchive_OldMonths_ExportedAndRemoved(t *testing.T) {
	t.Parallel()
	b, begin := year(t)
	dir := filepath.Join(t.TempDir(), "a")
	before := begin + 3
	entries := b.count("SELECT count(*) FROM entries WHERE month < $1", before.Start())
	kept := b.count("SELECT count(*) FROM entries WHERE month >= $1", before.Start())
	dry := b.options(before, dir)
	dry.DryRun = true
	would := b.run(dry)
	assert.True(t, !exists(dir) && len(would.Months) >= 3, "a dry run has made the directory, or says %v", would.Months)
	out := b.run(b.options(before, dir))
	exported := int64(0)
	for _, f := range out.Manifest.Files {
		if f.Table == "entries" {
			exported += f.Rows
		}
		t.Logf("%s: %d rows, %d bytes", f.Name, f.Rows, f.Bytes)
	}
	assert.True(t, exported == entries && b.count("SELECT count(*) FROM entries") == kept,
		"%d of %d entries exported, %d of %d kept", exported, entries, b.count("SELECT count(*) FROM entries"), kept)
	for _, m := range would.Months {
		assert.Zero(t, b.count("SELECT count(*) FROM pg_class WHERE relname = $1", m.Month.Partition()),
			"%s is still there", m.Month.Partition())
	}
	recorded := b.count("SELECT count(*) FROM archives WHERE removed_at IS NOT NULL")
	assert.Equal(t, int64(len(would.Months)), recorded, "months recorded")
	b.run(b.options(before, dir)) // the same archive once more
}

func TestArchive_WhatIsNotAllowed_RefusedByName_NothingRemoved(t *testing.T) {
	t.Parallel()
	b, begin := year(t)
	rows := b.count("SELECT count(*) FROM entries")
	now := journal.MonthOf(time.Now())
	newest := journal.MonthOf(time.Now().Add(-keysKept))
	full := t.TempDir()
	b.check(os.WriteFile(filepath.Join(full, "notes.txt"), []byte("x"), 0o600))
	for what, c := range map[string]struct {
		before journal.Month
		dir    string
		says   string
	}{
		"future":       {now + 1, t.TempDir(), newest.String()},
		"keys":         {newest + 1, t.TempDir(), newest.String()},
		"other files":  {begin + 3, full, "no archive"},
		"not writable": {begin + 3, "/proc/archive", "directory"},
	} {
		_, err := Run(t.Context(), b.options(c.before, c.dir))
		assert.ErrorContains(t, err, c.says, what)
		_, refused := errors.AsType[*Refusal](err)
		assert.False(t, !refused && what != "not writable", "%s: %v is no refusal", what, err)
	}
	assert.Equal(t, rows, b.count("SELECT count(*) FROM entries"), "entries that are left")
	assert.Zero(t, b.count("SELECT count(*) FROM archives"), "recorded archives")
}
