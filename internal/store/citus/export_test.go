package citus

// GroupsAt returns Groups with one shard on the node at each address. The addresses are in the order of the hashes.
func GroupsAt(at ...Address) *Groups {
	shards := make([]shard, len(at))
	for i, a := range at {
		shards[i] = shard{ID: int64(i + 1), From: int32(-1<<31 + i*(1<<32/len(at))), Host: a.Host, Port: int32(a.Port)} //nolint:gosec // a few
	}
	g := &Groups{}
	g.shards.Store(&shards)
	return g
}
