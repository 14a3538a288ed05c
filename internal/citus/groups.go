package citus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Groups tells in which shard group a tenant lies. The zero value knows none, and has all tenants in group 0.
type Groups struct {
	shards atomic.Pointer[[]shard] // in the order of their hashes
}

// shard is a shard of balances: those of the other tables have the same hashes.
type shard struct {
	ID   int64
	From int32 // its smallest hash; the next shard begins behind its largest one
}

// Refresh reads the shards. It is needed after one was split; a move changes nothing here.
func (g *Groups) Refresh(ctx context.Context, db Querier) error {
	rows, err := db.Query(ctx, "SELECT shardid, shardminvalue::integer FROM pg_dist_shard WHERE logicalrelid = 'balances'::regclass")
	if err != nil {
		return fmt.Errorf("read the shards: %w", err)
	}
	shards, err := pgx.CollectRows(rows, pgx.RowToStructByPos[shard])
	if err != nil {
		return fmt.Errorf("read the shards: %w", err)
	}
	slices.SortFunc(shards, func(a, b shard) int { return cmp.Compare(a.From, b.From) })
	g.shards.Store(&shards)
	return nil
}

// Of returns the tenant's group: a number from 0 to Count-1.
func (g *Groups) Of(tenant string) int {
	shards := g.shards.Load()
	if shards == nil {
		return 0
	}
	at, found := slices.BinarySearchFunc(*shards, hashOf(tenant), func(s shard, h int32) int { return cmp.Compare(s.From, h) })
	if !found {
		at--
	}
	return max(at, 0)
}

// Shard returns the id of the tenant's shard of balances.
func (g *Groups) Shard(tenant string) int64 {
	shards := g.shards.Load()
	if shards == nil || len(*shards) == 0 {
		return 0
	}
	return (*shards)[g.Of(tenant)].ID
}

// Count returns the number of groups.
func (g *Groups) Count() int {
	shards := g.shards.Load()
	if shards == nil {
		return 1
	}
	return max(len(*shards), 1)
}
