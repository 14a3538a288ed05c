package citus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// MinVersion is the oldest version of Citus that is tested.
const MinVersion = "13.2"

// Querier is a connection or a pool.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Cluster is a database whose tables are distributed.
type Cluster struct {
	Version string // of the extension, such as 13.2-1
	Nodes   int    // number of nodes that hold shards
	Groups  *Groups
}

// NotPlacedError reports that the database has the extension citus, and that some tables are not in their place.
type NotPlacedError struct {
	Tables []string
}

func (e *NotPlacedError) Error() string {
	return fmt.Sprintf("the database has the extension citus, and %d tables are not distributed (%s): run `quotasvc migrate up --citus`",
		len(e.Tables), strings.Join(e.Tables, ", "))
}

const selectExtension = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"

// selectPlaces returns the tables in $1 that exist, each with its place. Citus also has an entry for a local table if
// a foreign key refers to the table. Such a table counts as local.
const selectPlaces = `SELECT t.name, CASE WHEN p.partmethod = 'h' THEN 'distributed' WHEN p.partmethod = 'n' AND p.repmodel = 't' THEN 'reference' ELSE 'local' END
	FROM unnest($1::text[]) AS t (name)
	JOIN pg_class c ON c.oid = to_regclass(t.name)
	LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid`

// Detect returns the cluster. It returns nil for a database without Citus, after one query. It fails with
// *NotPlacedError if a table does not have its place.
func Detect(ctx context.Context, db Querier) (*Cluster, error) {
	c := &Cluster{Groups: &Groups{}}
	switch err := db.QueryRow(ctx, selectExtension).Scan(&c.Version); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // there is no cluster, and nothing went wrong
	case err != nil:
		return nil, fmt.Errorf("look for citus: %w", err)
	}
	found, err := placesOf(ctx, db)
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, t := range Tables() {
		if place, exists := found[t.Table]; exists && place != t.Place {
			wrong = append(wrong, t.Table)
		}
	}
	if len(wrong) > 0 {
		return nil, &NotPlacedError{Tables: wrong}
	}
	if err := db.QueryRow(ctx, "SELECT count(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards").Scan(&c.Nodes); err != nil {
		return nil, fmt.Errorf("count the nodes: %w", err)
	}
	return c, c.Groups.Refresh(ctx, db)
}

// IsDistributed reports whether the database has the extension citus and a distributed table "tenants".
func IsDistributed(ctx context.Context, db Querier) (bool, error) {
	var version string
	switch err := db.QueryRow(ctx, selectExtension).Scan(&version); {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for citus: %w", err)
	}
	found, err := placesOf(ctx, db)
	return found["tenants"] == Distributed, err
}

func placesOf(ctx context.Context, db Querier) (map[string]Place, error) {
	var names []string
	for _, t := range Tables() {
		names = append(names, t.Table)
	}
	rows, _ := db.Query(ctx, selectPlaces, names)
	found := map[string]Place{}
	var name, place string
	_, err := pgx.ForEachRow(rows, []any{&name, &place}, func() error {
		found[name] = Place(place)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the places of tables: %w", err)
	}
	return found, nil
}
