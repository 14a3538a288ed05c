package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return testenv.Pool(t, testenv.PostgresService(t))
}

func record(t *testing.T, tx pgx.Tx, tenant, reason string, at time.Time) {
	t.Helper()
	require.NoError(t, Record(t.Context(), tx, []Event{{Type: TenantSuspended, At: at, Tenant: tenant, Data: Change{Plan: "p", Reason: reason}}}))
}

func nobody(context.Context, pgx.Tx, []Listed) error { return nil }

// listed returns the result of the query q, for example the events after a certain event.
func listed(t *testing.T, pool *pgxpool.Pool, q Query) (reasons []string, last string, page Page) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
		page, err = List(t.Context(), tx, time.Now(), q)
		return err
	})
	require.NoError(t, err)
	last = q.After
	for i := range page.Items {
		reasons, last = append(reasons, string(page.Items[i].Data)), page.Items[i].ID()
	}
	return reasons, last, page
}

func data(reasons ...string) (out []string) {
	for _, r := range reasons {
		out = append(out, fmt.Sprintf(`{"plan": "p", "reason": %q}`, r))
	}
	return out
}

// If a transaction begins first and commits last, a reader that has continued before this commit must still get its
// event.
func TestNumber_LateCommit_NotMissedByAReader(t *testing.T) {
	t.Parallel()
	pool := open(t)
	slow := testenv.Must(t).Get(pool.Begin(t.Context()))
	record(t, slow, "acme", "first", time.Now())
	fast := testenv.Must(t).Get(pool.Begin(t.Context()))
	record(t, fast, "acme", "second", time.Now())
	require.NoError(t, fast.Commit(t.Context()))
	if got, _, _ := listed(t, pool, Query{Limit: 10}); got != nil {
		t.Errorf("listed before it has a position: %v", got)
	}
	n, err := Number(t.Context(), pool, nobody)
	require.True(t, n == 1 && err == nil, "%v, %v", n, err)
	got, after, _ := listed(t, pool, Query{Limit: 10})
	assert.Equal(t, data("second"), got)
	require.NoError(t, slow.Commit(t.Context()))
	n, err = Number(t.Context(), pool, nobody)
	require.True(t, n == 1 && err == nil, "%v, %v", n, err)
	got, _, _ = listed(t, pool, Query{After: after, Limit: 10})
	assert.Equal(t, data("first"), got)
}

// On Citus a transaction becomes visible on one node after the other, and a node may fail during COMMIT. If the list
// did not end before the events of this node, readers would never see these events.
func TestNumber_PositionNotVisibleYet_ListEndsBeforeIt(t *testing.T) {
	t.Parallel()
	pool := open(t)
	number := func(want int) {
		t.Helper()
		n, err := Number(t.Context(), pool, nobody)
		require.True(t, n == want && err == nil, "%d events, want %d (%v)", n, want, err)
	}
	wantListed := func(q Query, want ...string) (last string) {
		t.Helper()
		got, last, _ := listed(t, pool, q)
		assert.Equal(t, data(want...), got)
		return last
	}
	add := func(tenant, reason string, at time.Time) {
		t.Helper()
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { record(t, tx, tenant, reason, at); return nil }))
	}
	at := time.Now()
	add("acme", "read", at)
	number(1)
	after := wantListed(Query{Limit: 10}, "read")

	add("acme", "lost", at.Add(time.Millisecond))
	add("globex", "there", at.Add(2*time.Millisecond))
	number(2)
	exec := func(sql string, args ...any) {
		t.Helper()
		testenv.Exec(t, pool, sql, args...)
	}
	var lost int64
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT position FROM events WHERE tenant_id = 'acme' ORDER BY position DESC LIMIT 1").Scan(&lost))
	before, _ := ParseID(after)
	exec("UPDATE event_listing SET listed_to = $1", before)
	exec("UPDATE events SET position = NULL WHERE tenant_id = 'acme' AND position = $1", lost)
	add("globex", "later", at.Add(3*time.Millisecond))
	number(0)
	wantListed(Query{After: after, Limit: 10})

	exec("UPDATE events SET position = $1 WHERE tenant_id = 'acme' AND position IS NULL", lost)
	number(1)
	wantListed(Query{After: after, Limit: 10}, "lost", "there", "later")
}

// If positions were dropped with their month, the list must still continue after a day.
func TestNumber_PositionsGone_GoesOnAfterADay(t *testing.T) {
	t.Parallel()
	pool := open(t)
	day := time.Now().Add(-assumeVisibleAfter)
	for age, want := range map[time.Time]int{day.Add(time.Hour): 0, day.Add(-time.Hour): 1} {
		testenv.Exec(t, pool, "UPDATE event_listing SET listed_to = 0, given_from = $1, given_to = $1", age.UnixMicro())
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { record(t, tx, "acme", "new", time.Now()); return nil }))
		n, err := Number(t.Context(), pool, nobody)
		assert.True(t, min(n, 1) == want && err == nil, "%s: %d events, want %d (%v)", age, n, want, err)
	}
}

func TestNumber_Each_InTheSameTransaction_AloneAndInOrder(t *testing.T) {
	t.Parallel()
	pool := open(t)
	at := time.Now()
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for i := range numberMax + 10 {
			record(t, tx, "acme", fmt.Sprintf("%04d", i), at.Add(time.Duration(i)*time.Millisecond))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err := Number(t.Context(), pool, func(context.Context, pgx.Tx, []Listed) error { return errors.New("refused") })
	require.Error(t, err, "no error")
	if n, _, err := Waiting(t.Context(), pool); n != numberMax+10 || err != nil {
		t.Errorf("%d events wait after a failure (%v)", n, err)
	}
	var seen []string
	for _, want := range []int{numberMax, 10, 0} {
		n, err := Number(t.Context(), pool, func(ctx context.Context, _ pgx.Tx, l []Listed) error {
			if other, err := Number(ctx, pool, nobody); other != 0 || err != nil {
				t.Errorf("another instance lists %d events at the same time (%v)", other, err)
			}
			for i := range l {
				seen = append(seen, string(l[i].Data))
			}
			return nil
		})
		require.True(t, n == want && err == nil, "%d events, want %d (%v)", n, want, err)
	}
	var pages []string
	for q := (Query{Limit: 300}); ; {
		got, _, page := listed(t, pool, q)
		pages = append(pages, got...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	assert.True(t, len(pages) == numberMax+10 && slices.Equal(seen, pages) && pages[0] == data("0000")[0] &&
		pages[numberMax+9] == data(fmt.Sprintf("%04d", numberMax+9))[0], "%d events in pages, %d were given to each", len(pages), len(seen))
}

func TestList_Filters_AndAge(t *testing.T) {
	t.Parallel()
	pool := open(t)
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		record(t, tx, "acme", "a", time.Now())
		record(t, tx, "globex", "g", time.Now().Add(time.Millisecond))
		return Record(t.Context(), tx, []Event{{Type: VerifyDrift, At: time.Now().Add(time.Second), Data: map[string]int{"n": 1}}})
	}); err != nil {
		t.Fatal(err)
	}
	n, err := Number(t.Context(), pool, nobody)
	require.True(t, n == 3 && err == nil, "%v, %v", n, err)
	for name, c := range map[string]struct {
		q    Query
		want []string
	}{
		"all":    {Query{}, append(data("a", "g"), `{"n": 1}`)},
		"tenant": {Query{Tenant: "globex"}, data("g")},
		"type":   {Query{Type: string(VerifyDrift)}, []string{`{"n": 1}`}},
		"none":   {Query{Tenant: "acme", Type: string(VerifyDrift)}, nil},
	} {
		c.q.Limit = 10
		got, _, _ := listed(t, pool, c.q)
		assert.Equal(t, c.want, got, name)
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		page, err := List(t.Context(), tx, time.Now().Add(Kept+time.Hour), Query{Limit: 10})
		assert.Empty(t, page.Items, "events that are too old")
		return err
	})
	assert.NoError(t, err)
}

func TestParseID_RoundTrip(t *testing.T) {
	t.Parallel()
	for _, position := range []int64{0, 1, 1795640703123456} {
		got, ok := ParseID(IDOf(position))
		assert.True(t, got == position && ok, "%d: %d %v", position, got, ok)
	}
	for _, id := range []string{"", "evt_", "evt_1", "evt_-000000000000001", "evt_00000000000000001", "EVT_0000000000000001", "evt_000000000000000x"} {
		_, ok := ParseID(id)
		assert.False(t, ok, "%q is an id", id)
	}
}

func TestForget_MarksOfEndedPeriods_Alone(t *testing.T) {
	t.Parallel()
	pool := open(t)
	now := time.Now()
	emit := func(end time.Time) {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			var b pgx.Batch
			err := Emit(t.Context(), tx, &b, Emitted{Events: []Event{{
				Type: Exhausted, At: now, Tenant: "acme", Meter: "m", Data: Level{}, Once: &Once{Start: end.Add(-time.Hour), End: end, Mark: "x"},
			}}}, &Subscribers{})
			if err != nil {
				return err
			}
			return tx.SendBatch(t.Context(), &b).Close()
		})
		require.NoError(t, err)
	}
	emit(now.Add(-marksKept - time.Hour))
	emit(now.Add(time.Hour))
	emit(now.Add(time.Hour)) // has already been emitted
	more, err := Forget(t.Context(), pool, now)
	require.True(t, !more && err == nil, "%v, %v", more, err)
	var marks, events int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM event_marks), (SELECT count(*) FROM events)").Scan(&marks, &events))
	assert.True(t, marks == 1 && events == 2, "%d marks and %d events, want 1 and 2", marks, events)
}

// Several instances find the same event at the same time, each in a transaction that is not visible to the others.
// Only one of them emits the event.
func TestRecordOnce_ManyAtOnce_ToldOnce_RolledBackOnesCountForNothing(t *testing.T) {
	t.Parallel()
	pool := open(t)
	hour := time.Now().Truncate(time.Hour)
	told := func(mark string) []Event {
		return []Event{{Type: RejectionsHigh, At: hour, Tenant: "acme", Data: Rejections{Rule: mark}, Once: &Once{Start: hour, End: hour.Add(time.Hour), Mark: mark}}}
	}
	given := errors.New("given up")
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return errors.Join(RecordOnce(t.Context(), tx, told("a")), given)
	}); !errors.Is(err, given) {
		t.Fatal(err)
	}
	testenv.Together(8, func(_ int) {
		if err := pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
			return RecordOnce(context.Background(), tx, append(told("a"), told("b")...))
		}); err != nil {
			t.Error(err)
		}
	})
	var marks, events int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM event_marks), (SELECT count(*) FROM events)").Scan(&marks, &events))
	assert.True(t, marks == 2 && events == 2, "%d marks and %d events, want 2 and 2", marks, events)
}
