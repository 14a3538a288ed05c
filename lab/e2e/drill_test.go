package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/lab/drill"
)

// drilled runs a drill of the built program with few faults.
func drilled(t *testing.T, change func(*drill.Config)) *drill.Result {
	t.Helper()
	var progress, log logBuffer
	cfg := drill.Config{
		Exe: quotasvc(t), Seed: 1, Instances: 2, Clients: 8, Tenants: 4, Pace: 60 * time.Millisecond,
		Calm: 500 * time.Millisecond, Progress: &progress, Log: &log,
	}
	change(&cfg)
	r, err := drill.Run(t.Context(), cfg)
	require.NoError(t, err, "%v\n%s\n%s", err, progress.tail(), log.tail())
	var report strings.Builder
	assert.NoError(t, r.Print(&report))
	t.Logf("%s\n%s", progress.tail(), report.String())
	return r
}

// This is the short form of `make drill`. It has each of the faults that come in turn once.
func TestDrill_ShortForm_BreaksNoPromise(t *testing.T) {
	t.Parallel()
	r := drilled(t, func(c *drill.Config) { c.Kills, c.Failovers, c.Others, c.Restores = 1, 1, 7, 1 })
	assert.Empty(t, r.Violations())
	for _, fault := range []drill.Action{
		drill.Strangers, drill.StallLog, drill.KillLogStalled, drill.StopLogStalled, drill.RefuseWrites, drill.FailoverRedis, drill.KillWithoutRedis,
	} {
		assert.Equal(t, 1, r.Faults[fault], fault)
	}
	assert.True(t, r.Strangers[401] > 0 && r.Limits.Granted > 0 && r.Limits.Local > 0,
		"strangers were answered %v; of limits %+v were granted", r.Strangers, r.Limits)
	done := r.Operations[drill.Done]
	assert.True(t, done >= 20 && len(r.Restores) == 1 && r.Faults[drill.Failover] == 1,
		"%d operations were acknowledged, %d clusters restored; faults: %v", done, len(r.Restores), r.Faults)
}

// The drill must report a changed journal. A drill that never fails would prove nothing.
func TestDrill_JournalChanged_IsNoticed(t *testing.T) {
	t.Parallel()
	nth := func(n string) string {
		return `(tenant_id, operation_id, line, month) = (SELECT tenant_id, operation_id, line, month FROM entries
			WHERE kind = 'debit' AND left(operation_id, 1) <> '§' ORDER BY created_at, tenant_id, operation_id OFFSET ` + n + ` LIMIT 1)`
	}
	changes := []struct{ sql, found string }{
		{"DELETE FROM entries WHERE " + nth("0"), "lost"},
		{`INSERT INTO entries SELECT (jsonb_populate_record(e, '{"line": 99, "seq": 99999998}')).* FROM entries e WHERE ` + nth("1"), "doubled"},
		{`INSERT INTO entries SELECT (jsonb_populate_record(e, '{"operation_id": "nobody", "seq": 99999999}')).* FROM entries e WHERE ` + nth("2"), "in the journal and remembered by nobody"},
	}
	r := drilled(t, func(c *drill.Config) {
		c.Tamper = func(ctx context.Context, url string) error {
			db, err := pgx.Connect(ctx, url)
			if err != nil {
				return err
			}
			defer db.Close(ctx)
			for _, change := range changes {
				tag, err := db.Exec(ctx, change.sql)
				if err != nil || tag.RowsAffected() != 1 {
					return fmt.Errorf("%d rows: %w", tag.RowsAffected(), err)
				}
			}
			return nil
		}
	})
	for _, change := range changes {
		assert.True(t, slices.Contains(r.Violations(), "1 "+change.found+" at the end"),
			"violations %q, want one of %q", r.Violations(), change.found)
	}
	assert.False(t, r.Verified, "verify is clean")
}
