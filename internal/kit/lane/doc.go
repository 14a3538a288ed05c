// Package lane implements natural group commit: a bounded queue and one goroutine. The goroutine takes all waiting items,
// processes them as one batch and answers each caller.
//
// # Terms
//
//   - item: one caller's request (type Q) and its place in the queue.
//   - batch: the items that are processed together. The goroutine takes the oldest item and all other waiting items, up to
//     the batch's weight. It never waits for more items, so an idle lane adds no delay. In a busy lane items queue up while
//     a batch is processed, so batches grow by themselves.
//   - weight: the share of a batch that an item uses, for example the number of rows it writes. An item heavier than a whole
//     batch is processed alone.
//
// # Invariants
//
//  1. Items are processed in the order in which Do accepted them.
//  2. Every Do returns the answer to its item, one of the errors of this package, or the error of its context. Every
//     DoBy returns the same, with ErrLate in place of the context's error. DoWithin may return ErrLate or the
//     context's error.
//  3. If a caller gives up before its batch starts, the lane drops the item. Once the batch has started, the item is
//     never dropped. So a context's error or ErrLate means that nothing was done.
//  4. At most MaxQueue items wait. A further item is refused at once with ErrFull. This is the backpressure.
//  5. A panic in process, or a wrong number of answers, fails the items of that batch only. The lane continues.
//
// # Clock
//
// DoBy and DoWithin use the runtime's clock, as contexts do. Config.Now is read only to measure how long items waited.
//
// # Concurrency
//
// Do and Stop may be called from any goroutine. The process function runs on the lane's goroutine only, one call at a time.
// It gets the lane's context, never a caller's context, so a caller that gives up cannot cancel a batch with other items.
// The lane sets no deadline for process: process sets its own.
//
// # Failure
//
// Stop refuses new items and finishes the queued items. If its context ends first, Stop cancels the context of
// process. Queued items then get ErrStopped (nothing was done). Items of the current batch get ErrUnfinished (outcome
// unknown).
package lane
