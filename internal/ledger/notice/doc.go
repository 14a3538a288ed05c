// Package notice derives events from the changes of a batch. Events report thresholds that were crossed, grants that
// were issued or have ended, holds that have expired, and periods that were opened.
//
// # Invariants
//
//  1. The events depend on the changes alone. Nothing is read, and nothing is changed.
//  2. Operations are examined one by one. So a threshold that one operation of a batch crosses has its event even if
//     the next operation refunds the use.
//  3. Events have the order of the entries that caused them.
//  4. A batch of debits that stay below the lowest threshold costs one comparison per balance.
//
// # Clock
//
// No clock is read: the instants are those of the entries.
//
// # Concurrency
//
// The functions are pure, so they can be called concurrently.
//
// # Failure
//
// The functions return no errors.
package notice
