// Package waitlist keeps values that wait to be processed together, and returns them in batches that are fair to
// tenants.
//
// # Invariants
//
//	W1  The value that has waited longest is taken first, within the bounds of W2 and W3.
//	W2  A batch has places of one group only: the group of the place that has waited longest.
//	W3  If more places wait than a batch has, each tenant first gets at most Config.Share places. Remaining room
//	    goes to any waiting places of the group.
//	W4  At most Config.Most places wait, and at most Config.MostOf places of one tenant. So a tenant that sends too
//	    much is refused, and other tenants are not.
//
// # Concurrency
//
// All methods of a List may be called from any goroutine. It has no goroutine and no clock.
package waitlist
