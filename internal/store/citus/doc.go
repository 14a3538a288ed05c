// Package citus places the tables of a database on the nodes of a Citus cluster, and tells in which shard group a tenant lies.
//
// # Terms
//
// A distributed table is divided by tenant_id into shards. All distributed tables are colocated: what belongs to one tenant lies on one node,
// in the shards of one group. A reference table has a copy on every node. A local table lies on the coordinator alone. A place is one of the
// three; every table has one (places.go).
//
// # Invariants
//
//	C1  Every table that a migration makes has a place. A test compares the list with the schema.
//	C2  Tenants of one group can be read, locked and written by one statement on one node.
//	C3  GroupOf gives a tenant the shard that Citus gives it: a test compares the two.
//	C4  Distribute can be interrupted and run again. It changes no table that has its place already.
//	C5  Of never returns a pool of a node that was not reached since it was lost. Where a shard was moved a moment ago, its former node passes
//	    statements on.
//
// # Clock, concurrency, failure
//
// The package has no clock. Groups and Nodes are safe for concurrent use; Refresh replaces the ranges at once. Errors of Distribute and Detect say what an
// operator can do; other errors are those of the driver, wrapped.
package citus
