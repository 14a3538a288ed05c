// Package citus places the tables of a database on the nodes of a Citus cluster, and returns the shard group of a
// tenant.
//
// # Terms
//
// A distributed table is divided by tenant_id into shards. All distributed tables are colocated: all rows of a tenant
// are on one node, in the shards of one shard group. A reference table has a copy on every node. A local table is
// only on the coordinator. The place of a table says which of these three kinds it is (places.go).
//
// # Invariants
//
//	C1  Every table that a migration creates has a place. A test compares the list of places with the schema.
//	C2  Tenants of one group can be read, locked and written by one statement on one node.
//	C3  Groups.Of returns the group of the shard in which Citus stores the tenant. A test compares Groups.Of with
//	    Citus.
//	C4  Distribute can be interrupted and run again. It does not change a table that already has its place.
//	C5  After a node was lost, Nodes.Of does not return its pool until the node was reached again. If a shard was
//	    moved a moment ago, its former node forwards the statements.
//
// # Clock, concurrency, failure
//
// The package has no clock. Groups and Nodes are safe for concurrent use. Refresh replaces all shards in one step.
// Errors of Distribute and Detect say what an operator can do. Other errors wrap the error of the driver.
package citus
