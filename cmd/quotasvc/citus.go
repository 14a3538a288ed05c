package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/store/citus"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// citusShardsMax is the maximum number of shard groups of a new database. Each shard group has some hundred tables
// and indexes on its node.
const citusShardsMax = 1024

// databaseTarget returns whether the tables of a database are distributed over a Citus cluster. If only some of the
// tables are distributed, it returns an error.
func databaseTarget(ctx context.Context, databaseURL string) (namedsql.Target, error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return namedsql.Plain, redactedParse(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // there is nothing left to write
	cluster, err := citus.Detect(ctx, conn)
	return namedsql.Target(cluster != nil), err
}

// distribute distributes the tables over a Citus cluster if shards is above 0. If shards is 0, it distributes new
// tables of a database that is already distributed.
func distribute(ctx context.Context, databaseURL string, log *slog.Logger, shards int) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return redactedParse(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // there is nothing left to write
	if shards == 0 {
		if before, err := citus.IsDistributed(ctx, conn); err != nil || !before {
			return err
		}
		shards = citus.DefaultShards
	}
	if err := citus.Distribute(ctx, conn, shards, log); err != nil {
		return fmt.Errorf("distribute the tables: %w", err)
	}
	return nil
}
