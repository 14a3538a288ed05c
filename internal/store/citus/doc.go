// Package citus places the tables of a database on the nodes of a Citus cluster, and returns the shard group of a
// tenant.
//
// # Terms
//
// A distributed table is divided by tenant_id into shards. All distributed tables are colocated: all rows of a tenant
// are on one node, in the shards of one group. A reference table has a copy on every node. A local table is on the
// coordinator only. Every table has a place (places.go): distributed, reference or local.
//
// # Invariants
//
//	C1  Every table that a migration creates has a place. A test compares the list with the schema.
//	C2  Tenants of one group can be read, locked and written by one statement on one node.
//	C3  Groups.Of returns the group of the shard in which Citus stores the tenant: a test compares the results.
//	C4  Distribute can be interrupted and run again. It changes no table that has its place already.
//	C5  Of never returns a pool of a node that was not reached since it was lost. If a shard was moved a moment ago,
//	    its former node forwards the statements.
//
// # Clock, concurrency, failure
//
// The package has no clock. Groups and Nodes are safe for concurrent use; Refresh replaces all ranges in one step.
// Errors of Distribute and Detect say what an operator can do; other errors wrap the error of the driver.
package citus
