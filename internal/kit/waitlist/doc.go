// Package waitlist keeps values that wait to be processed together. It returns them in batches that are fair to
// tenants.
//
// # Invariants
//
//	W1  The value that has waited longest is taken first, unless W2 or W3 excludes it.
//	W2  All places of a batch are of one group: the group of the place that has waited longest.
//	W3  If more places wait than fit into a batch, each tenant first gets at most Config.Share places. The remaining
//	    room goes to any waiting places of the group, the oldest first.
//	W4  At most Config.Most places wait, and at most Config.MostOf places of one tenant. So if one tenant sends too
//	    much, only this tenant is refused.
//
// # Concurrency
//
// All methods of a List may be called from any goroutine. It has no goroutine and no clock.
package waitlist
