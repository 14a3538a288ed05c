package verifier

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Entries may be removed up to a pinned checkpoint. If later entries are missing, verify reports it. After the
// removal verify detects the same damage as before.
func TestPin_EntriesBeforeRemoved_VerifyStaysStrict(t *testing.T) {
	t.Parallel()
	b := newBundle(t).history()
	at := b.now()
	b.advance(time.Hour)
	mustDo(b, debitOf("acme", "later-1", 5))
	b.mustVerify()
	remove := func() {
		b.exec("DELETE FROM entries e USING checkpoints c WHERE c.archived AND (e.tenant_id, e.meter, e.subject) = (c.tenant_id, c.meter, c.subject) AND e.seq <= c.seq")
	}
	pinned, err := b.Pin(t.Context(), at, nil)
	b.must(err)
	require.True(t, pinned.Balances == 2 && pinned.Clean(),
		"pinned %d balances, differences %v", pinned.Balances, pinned.Differences)
	again, err := b.Pin(t.Context(), at, nil)
	assert.True(t, err == nil && again.Balances == 0, "pinned again: %+v, %v", again, err)
	remove()
	report := b.mustVerify()
	assert.True(t, report.Entries != 0 && report.Entries <= 20, "%d entries were read", report.Entries)
	mustDo(b, debitOf("acme", "later-2", 5))
	b.mustVerify()
	for name, sql := range map[string]string{
		"one entry more is gone":      "DELETE FROM entries WHERE seq = (SELECT min(seq) FROM entries WHERE meter = 'api_calls') AND meter = 'api_calls'",
		"an entry was changed":        "UPDATE entries SET operation_id = 'x' WHERE operation_id = 'later-1'",
		"a grant was minted":          "UPDATE grants SET remaining = remaining + 1, amount = amount + 1 WHERE grant_id = 'paid'",
		"the balance has another sum": "UPDATE balances SET used = used + 1, granted = granted + 1 WHERE meter = 'api_calls'",
		"the checkpoint was changed":  "UPDATE checkpoints SET remaining = remaining + 1 WHERE archived AND meter = 'api_calls'",
		"the checkpoint is gone":      "DELETE FROM checkpoints WHERE archived AND meter = 'api_calls'",
	} {
		tables := []string{"entries", "grants", "balances", "checkpoints"}
		for _, table := range tables {
			b.exec("CREATE TEMP TABLE kept_" + table + " AS SELECT * FROM " + table)
		}
		b.exec(sql)
		assert.False(t, b.report().Clean(), "%s: no difference", name)
		for _, table := range tables {
			b.exec("DELETE FROM " + table + "; INSERT INTO " + table + " SELECT * FROM kept_" + table + "; DROP TABLE kept_" + table)
		}
	}
	b.mustVerify()
}
