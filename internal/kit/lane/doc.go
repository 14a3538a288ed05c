// Package lane implements natural group commit: a bounded queue and one goroutine. The goroutine takes the waiting
// items, processes them as one batch and answers each caller.
//
// # Terms
//
//   - item: the request of one caller (type Q) and its position in the queue.
//   - batch: the items that are processed together. The goroutine takes the oldest item, and further waiting items up
//     to the maximum weight. It never waits for more items, so an idle lane adds no delay. In a busy lane items queue
//     up while a batch is processed, so the next batch is larger.
//   - weight: the share of a batch that an item takes, for example the number of rows that it writes. An item that is
//     heavier than the maximum weight of a batch is processed alone.
//
// # Invariants
//
//  1. Items are processed in the order in which Do accepted them.
//  2. Do returns the answer to its item, one of the errors of this package except for ErrLate, or the error of its
//     context. DoBy may return ErrLate, but not the error of its context. DoWithin may return both.
//  3. If a caller gives up before the batch of its item starts, the lane drops the item. After the batch has started,
//     the item is never dropped. So if a caller gets the error of its context or ErrLate, nothing was done.
//  4. At most MaxQueue items wait. A further item is refused at once with ErrFull, so that callers slow down.
//  5. If process panics or returns a wrong number of answers, only the items of that batch fail. The lane continues.
//
// # Clock
//
// DoBy and DoWithin use the runtime's clock, as contexts do. Config.Now is used only to measure how long items
// waited.
//
// # Concurrency
//
// Do and Stop may be called from any goroutine. The process function runs on the lane's goroutine only, one call at a
// time. It gets the lane's context, never a caller's context. So a caller that gives up cannot cancel a batch with
// the items of other callers. The lane sets no deadline for process: process must set its own.
//
// # Failure
//
// Stop refuses new items and finishes the queued items. If its context ends first, Stop cancels the context of
// process. Queued items then get ErrStopped (nothing was done). Items of the current batch get ErrUnfinished (outcome
// unknown).
package lane
