package journal

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eventTables are the tables whose old partitions are dropped.
var eventTables = tables[1:]

// monthsOf returns the months for which a table has partitions.
func (s *stand) monthsOf(table string) (out []Month) {
	s.t.Helper()
	partitions, err := s.partitionsOf(s.t.Context(), s.conn, table)
	require.NoError(s.t, err)
	for _, p := range partitions {
		out = append(out, p.From)
	}
	return out
}

// insertInto writes a row with the last instant of a month.
func (s *stand) insertInto(table string, m Month) {
	s.t.Helper()
	at := m.End().Add(-time.Microsecond)
	switch table {
	case "events":
		s.exec("INSERT INTO events (tenant_id, month, type, at, data, position) VALUES ('acme', $1, 'verify.drift', $2, '{}', $3)", m.Start(), at, at.UnixMicro())
	case "webhook_deliveries":
		s.exec(`INSERT INTO webhook_deliveries (webhook_id, position, month, type, tenant_id, status, queued_at) VALUES ('w', $3, $1, 'verify.drift', 'acme', 'dead', $2)`,
			m.Start(), at, at.UnixMicro())
	default:
		s.exec(insertEntry, "acme", fmt.Sprint("op-", m), m.Start())
	}
}

// Events and deliveries can be read for 90 days. The partition of a month is dropped as soon as all its rows are
// older. The partitions of the journal (entries) stay.
func TestMakeAhead_EventsOlderThan90Days_DroppedByTheMonth(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	const before, after = 5, 2
	first := s.now - before
	for m := first; m < s.now; m++ {
		require.NoError(t, s.Make(t.Context(), s.conn, m))
	}
	for _, table := range tables {
		for m := first; m <= s.now; m++ {
			s.insertInto(table, m)
		}
	}
	for now := s.now - before + 1; now <= s.now+after; now++ {
		for range 2 { // the second run has nothing to do
			require.NoError(t, s.MakeAhead(t.Context(), s.conn, now))
		}
		for _, table := range eventTables {
			there := s.monthsOf(table)
			var rows []Month
			for m := first; m <= s.now; m++ {
				newest := m.End().Add(-time.Microsecond)
				young := newest.After(now.Start().Add(-90 * 24 * time.Hour))
				assert.True(t, slices.Contains(there, m) == young,
					"in %s: %s of %s is there: %t; its newest row is of %s", now, table, m, !young, newest)
				if young {
					rows = append(rows, m)
				}
			}
			n := count[int](t, s.conn, "SELECT count(*) FROM "+table)
			assert.Len(t, rows, n, "in %s: rows of %s", now, table)
			for m := now - MonthsKept; m <= now+MonthsAhead; m++ {
				assert.True(t, slices.Contains(there, m), "in %s: %s has no partition for %s", now, table, m)
			}
			const most = MonthsKept + 1 + before + after + MonthsAhead
			assert.LessOrEqual(t, len(there), most, "in %s: partitions of %s", now, table)
		}
	}
	assert.Equal(t, before+1, count[int](t, s.conn, "SELECT count(*) FROM entries"), "none may leave but by an archive")
	const left = `SELECT count(*) FROM pg_class c WHERE c.relkind = 'r' AND c.relname ~ '^(events|webhook_deliveries)_\d{4}_\d\d$'
		AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)`
	assert.Zero(t, count[int](t, s.conn, left), "tables of dropped months are left behind")
}
