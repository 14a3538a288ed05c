package catalog

import (
	"slices"
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

// A snapshot has the older versions of a plan as long as a tenant may have them.
func TestSnapshot_OlderVersions_AsLongAsInForce(t *testing.T) {
	t.Parallel()
	c := startCatalog(t, testenv.Postgres(t), Config{ReloadEvery: time.Hour})
	seed(t, c.Store)
	older := func() (versions []int32) {
		t.Helper()
		require.NoError(t, c.readSnapshotNow(t.Context()))
		for v := range c.Snapshot().Older {
			require.Equal(t, "starter", v.Plan)
			versions = append(versions, v.Version)
		}
		slices.Sort(versions)
		return versions
	}
	require.Empty(t, older())
	put(t, c.PutPlan, starter(2000))
	require.Equal(t, []int32{1}, older())
	put(t, c.PutPlan, starter(3000))
	require.Equal(t, []int32{1, 2}, older(), "both may wait")
	require.Equal(t, int32(1), c.Snapshot().Plan("starter", 1).Version)
	require.Equal(t, int32(3), c.Snapshot().Plan("starter", 3).Version)
	require.Equal(t, int32(3), c.Snapshot().Plan("starter", 4).Version, "a version that this snapshot does not have")
	byHand(t, c.Store, "UPDATE plan_allowances SET every = 'month'")
	byHand(t, c.Store, "UPDATE plans SET created_at = created_at - interval '39 days'")
	require.Equal(t, []int32{1, 2}, older(), "a month later")
	byHand(t, c.Store, "UPDATE plans SET created_at = created_at - (3 - version) * interval '1 day'")
	require.Equal(t, []int32{2}, older(), "the second version has been in force for all")
	now := starter(4000)
	now.Apply = "now"
	put(t, c.PutPlan, now)
	require.Empty(t, older(), "all tenants have the newest version")
}
