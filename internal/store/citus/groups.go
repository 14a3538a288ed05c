package citus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// Groups maps tenants to shard groups. The zero value has no shards: all tenants are in group 0.
type Groups struct {
	shards atomic.Pointer[[]shard] // in the order of their smallest hashes
}

// shard is a shard of the table balances. The shards of the other tables have the same ranges of hashes.
type shard struct {
	ID   int64
	From int32 // smallest hash of the shard; its hashes end just before From of the next shard

	Host string // host of the node that holds the shard; empty: only the coordinator can be used
	Port int32
}

// selectShards returns the shards of balances, each with its node. groupid 0 is the coordinator. Only a node with its
// own copy of the metadata can be used without the coordinator.
const selectShards = `SELECT DISTINCT ON (s.shardid) s.shardid, s.shardminvalue::integer,
		CASE WHEN n.groupid <> 0 AND n.hasmetadata AND n.metadatasynced THEN n.nodename ELSE '' END, n.nodeport
	FROM pg_dist_shard s
	JOIN pg_dist_placement p ON p.shardid = s.shardid AND p.shardstate = 1
	JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
	WHERE s.logicalrelid = 'balances'::regclass
	ORDER BY s.shardid, n.groupid`

// Refresh reads the shards. It must be called after a shard was split or moved.
func (g *Groups) Refresh(ctx context.Context, db Querier) error {
	rows, _ := db.Query(ctx, selectShards)
	shards, err := pgx.CollectRows(rows, pgx.RowToStructByPos[shard])
	if err != nil {
		return fmt.Errorf("read the shards: %w", err)
	}
	slices.SortFunc(shards, func(a, b shard) int { return cmp.Compare(a.From, b.From) })
	g.shards.Store(&shards)
	return nil
}

// Of returns the shard group of a tenant: a number from 0 to Count-1.
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

// Shard returns the id of the shard that has the tenant's rows of the table balances. It returns 0 if there are no
// shards.
func (g *Groups) Shard(tenant string) int64 {
	shards := g.shards.Load()
	if shards == nil || len(*shards) == 0 {
		return 0
	}
	return (*shards)[g.Of(tenant)].ID
}

// Count returns the number of shard groups.
func (g *Groups) Count() int {
	shards := g.shards.Load()
	if shards == nil {
		return 1
	}
	return max(len(*shards), 1)
}

// address returns the address of the tenant's node. The address is empty if only the coordinator can be used.
func (g *Groups) address(tenant string) Address {
	shards := g.shards.Load()
	if shards == nil || len(*shards) == 0 {
		return Address{}
	}
	return (*shards)[g.Of(tenant)].address()
}

// addresses returns the addresses of the nodes that can be used without the coordinator, each address once.
func (g *Groups) addresses() (all []Address) {
	shards := g.shards.Load()
	if shards == nil {
		return nil
	}
	for _, s := range *shards {
		if at := s.address(); at != (Address{}) && !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

func (s *shard) address() Address {
	if s.Host == "" {
		return Address{}
	}
	return Address{Host: s.Host, Port: uint16(s.Port)} //nolint:gosec // pg_dist_node has ports
}
