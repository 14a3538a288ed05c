// Package waitlist keeps what waits to be done together, and hands it out in batches that are fair to tenants.
//
// # Invariants
//
//	W1  What waits longest goes first, within the bounds of W2 and W3.
//	W2  A batch has places of one group only: that of the place that waits longest.
//	W3  While others of the group wait, no tenant has more than Config.Share places of a batch. Room that is left goes to whoever waits.
//	W4  At most Config.Most places wait, and Config.MostOf of one tenant: a tenant that asks too much is refused, the others are not.
//
// # Concurrency
//
// All methods of a List may be called from any goroutine. It has no goroutine and no clock.
package waitlist
