package journal

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
)

// indexTable matches the table in the definition of an index.
var indexTable = regexp.MustCompile(`^CREATE INDEX \S+ ON ONLY \S+ `)

// missingIndex is an index of entries that a partition does not have.
type missingIndex struct {
	parent, partition string
	definition        string // definition of the parent's index
	name              string // name of the partition's own index
	left              bool   // an interrupted attempt has left an index
}

// BuildIndexes creates the indexes of entries that partitions lack, and attaches them. It runs after a migration has
// created the parent's indexes. Each index is created CONCURRENTLY, so no other statement waits for it. It can be
// interrupted and called again. The connection must not be in a transaction.
func (j *Journal) BuildIndexes(ctx context.Context, conn *pgx.Conn) error {
	rows, _ := conn.Query(ctx, j.sql["MissingIndexes"])
	var missing []missingIndex
	var m missingIndex
	_, err := pgx.ForEachRow(rows, []any{&m.parent, &m.partition, &m.definition, &m.name, &m.left}, func() error {
		missing = append(missing, m)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the journal's indexes: %w", err)
	}
	for _, m := range missing {
		if err := j.buildIndex(ctx, conn, m); err != nil {
			return fmt.Errorf("make the index %s: %w", m.name, err)
		}
		j.log.Info("journal index made", "index", m.name)
	}
	return nil
}

func (j *Journal) buildIndex(ctx context.Context, conn *pgx.Conn, m missingIndex) error {
	if m.left { // the index may be incomplete
		if _, err := conn.Exec(ctx, "DROP INDEX CONCURRENTLY "+m.name); err != nil {
			return err
		}
	}
	create := indexTable.ReplaceAllString(m.definition, fmt.Sprintf("CREATE INDEX CONCURRENTLY %s ON %s ", m.name, m.partition))
	if _, err := conn.Exec(ctx, create); err != nil {
		return err
	}
	attach := fmt.Sprintf("ALTER INDEX %s ATTACH PARTITION %s", m.parent, m.name)
	return patiently(ctx, func() error { return execBriefly(ctx, conn, attach) })
}
