// Package lane is natural group commit: a bounded queue and one goroutine that takes what is waiting, processes it as one
// batch and answers each caller.
//
// # Terms
//
//   - item: one caller's request (type Q) and its place in the queue.
//   - batch: the items taken at once. The goroutine takes the oldest item and then everything else that is already waiting,
//     up to the batch's weight. It never waits for company: an idle lane adds no delay, a busy lane's batches grow by
//     themselves, because items pile up while the previous batch is being processed.
//   - weight: what an item counts for in a batch (the rows it writes, for example). An item heavier than a whole batch is
//     processed alone.
//
// # Invariants
//
//  1. Items are processed in the order in which Do accepted them.
//  2. Every Do returns: with its item's answer, or with exactly one of the errors of this package, or with its context's
//     error. Every DoBy does, too: there is ErrLate in place of the context's error.
//  3. An item whose caller has gone is dropped if its batch has not started, and is never dropped once it has. A context's
//     error from Do, and ErrLate from DoBy, therefore mean "nothing was done".
//  4. At most MaxQueue items wait. The next one is refused at once with ErrFull: that is the backpressure.
//  5. A panic in process, or a wrong number of answers, fails the batch's items and nothing else: the lane goes on.
//
// # Clock
//
// DoBy waits by the runtime's clock, as contexts do. Config.Now is read only to measure how long items waited.
//
// # Concurrency
//
// Do and Stop may be called from any goroutine. The process function runs on the lane's goroutine only, one call at a time.
// It gets the lane's context, never a caller's, so one caller who gives up cannot take the others' batch down. The lane
// puts no deadline on it: process sets its own.
//
// # Failure
//
// Stop refuses new items and finishes what is queued. If its context ends first, the items still queued answer ErrStopped
// (nothing was done), process has its context cancelled, and the items of the batch in its hands answer ErrUnfinished (the
// outcome is unknown).
package lane
