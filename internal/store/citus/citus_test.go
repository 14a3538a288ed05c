package citus_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/citus"
)

// A new table needs a place. Without a place it would be only on the coordinator, and statements that join it with
// other tables would fail.
func TestTables_EveryTableOfTheSchema_HasOnePlace(t *testing.T) {
	t.Parallel()
	conn := testenv.Connect(t, testenv.Postgres(t))
	rows, err := conn.Query(t.Context(), `SELECT c.relname::text, EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
		FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`)
	require.NoError(t, err)
	places := map[string]citus.Place{}
	for _, in := range citus.Tables() {
		_, twice := places[in.Table]
		assert.False(t, twice, "%s has two places", in.Table)
		places[in.Table] = in.Place
	}
	var name string
	var ofTenant bool
	testenv.Must(t).Get(pgx.ForEachRow(rows, []any{&name, &ofTenant}, func() error {
		place, known := places[name]
		switch {
		case !known:
			t.Errorf("the table %s has no place: add it to Tables in internal/store/citus/places.go", name)
		case place == citus.Distributed && !ofTenant:
			t.Errorf("%s is distributed and has no tenant_id", name)
		}
		delete(places, name)
		return nil
	}))
	for name := range places {
		t.Errorf("there is no table %s", name)
	}
}

func TestDetect_PostgreSQLWithoutCitus_NoCluster(t *testing.T) {
	t.Parallel()
	if testenv.OnCitus() {
		t.Skip("not on Citus: this is about databases without it")
	}
	cluster, err := citus.Detect(t.Context(), testenv.Connect(t, testenv.Postgres(t)))
	assert.True(t, cluster == nil && err == nil, "%v, %v", cluster, err)
	err = citus.Distribute(t.Context(), testenv.Connect(t, testenv.Postgres(t)), 4, slog.New(slog.DiscardHandler))
	assert.True(t, err != nil && strings.Contains(err.Error(), "citus"), err)
}

func TestCitus_PlacesAndGroups_AgreeWithTheCluster(t *testing.T) {
	t.Parallel()
	s := testenv.CitusPrivate(t)
	conn := testenv.Connect(t, s.URL)
	cluster, err := citus.Detect(t.Context(), conn)
	require.NoError(t, err)
	assert.True(t, cluster.Nodes == 2 && cluster.Groups.Count() == 4,
		"%d nodes and %d groups, want 2 and 4", cluster.Nodes, cluster.Groups.Count())
	groups := map[int]bool{}
	for n := range 200 {
		tenant := strings.Repeat("é", n%5) + fmt.Sprint("tenant-", n, strings.Repeat("x", n%17))
		var shard int64
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT get_shard_id_for_distribution_column('balances', $1::text)", tenant).Scan(&shard))
		assert.Equal(t, shard, cluster.Groups.Shard(tenant), "%s is in shard %d", tenant, shard)
		groups[cluster.Groups.Of(tenant)] = true
	}
	assert.Len(t, groups, 4, "200 tenants are in %d groups", len(groups))
	// The second run finds every table in its place.
	assert.NoError(t, citus.Distribute(t.Context(), conn, 4, slog.New(slog.DiscardHandler)))
	// From now on this table is like a table that a later migration has created.
	testenv.Exec(t, conn, "SELECT undistribute_table('rollups')")
	var wrong *citus.NotPlacedError
	_, err = citus.Detect(t.Context(), conn)
	assert.True(t, asNotPlaced(err, &wrong) && slices.Equal(wrong.Tables, []string{"rollups"}), err)
	assert.NoError(t, citus.Distribute(t.Context(), conn, 4, slog.New(slog.DiscardHandler)))
	_, err = citus.Detect(t.Context(), conn)
	assert.NoError(t, err)
}

func asNotPlaced(err error, to **citus.NotPlacedError) bool {
	e, ok := err.(*citus.NotPlacedError) //nolint:errorlint // Detect returns it as it is
	*to = e
	return ok
}

func TestMain(m *testing.M) { testenv.Main(m) }
