package catalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestReload_OnlyWhatChanged_IsReadAndCompiled(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	c := startCatalog(t, url, Config{ReloadEvery: time.Hour})
	seed(t, c.Store)
	put(t, c.PutLimit, limitOf("a", ""))
	put(t, c.PutLimit, limitOf("b", ""))
	testenv.Eventually(t, func() bool { return len(c.Snapshot().Limits) == 2 }, "two limits")
	compiled := 0
	c.Compile(func(s, _ *Snapshot) any { compiled++; return len(s.Limits) })
	require.Equal(t, 1, compiled)
	reload := func() *Snapshot {
		t.Helper()
		require.NoError(t, c.readSnapshotNow(t.Context()))
		return c.Snapshot()
	}
	before := reload()
	require.Equal(t, 2, before.Compiled)
	require.Same(t, before, reload(), "nothing was changed")
	require.Equal(t, 1, compiled)

	for _, byOthers := range []string{
		`UPDATE limits SET spec = jsonb_set(spec, '{rate}', '"7/s"') WHERE rule = 'b'`, // keeps updated_at
		`UPDATE plan_allowances SET amount = amount + 1`,
		`UPDATE meters SET unit = unit || 's'`,
		`INSERT INTO limits (rule, spec, updated_at) SELECT 'c', spec, 'epoch' FROM limits WHERE rule = 'b'`,
		`DELETE FROM limits WHERE rule = 'c'`,
	} {
		byHand(t, c.Store, byOthers)
		after := reload()
		require.NotSame(t, before, after, byOthers)
		require.Same(t, before.Limits[0], after.Limits[0], "%s: the limit a is the same", byOthers)
		require.Equal(t, len(after.Limits), after.Compiled)
		whole, err := c.readSnapshot(t.Context(), &Snapshot{}, after.ReadAt)
		require.NoError(t, err)
		whole.Compiled = after.Compiled
		require.Equal(t, whole, after, byOthers)
		before = after
	}
	require.Equal(t, "7/s", before.Limits[1].Rate)
	limits, plans := before.Changes(&Snapshot{Limits: before.Limits[:1], Plans: before.Plans})
	require.Empty(t, plans)
	require.Equal(t, before.Limits[1:], limits)
}
