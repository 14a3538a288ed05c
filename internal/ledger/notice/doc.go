// Package notice says which events the changes of a batch tell: thresholds that were crossed, grants that were issued or have ended, holds that have
// expired, periods that were opened.
//
// # Invariants
//
//  1. What is told depends on the changes alone. Nothing is read, and nothing is changed.
//  2. Entries are looked at one by one: a threshold that one operation of a batch crosses is told, also if the next one takes the use back.
//  3. A batch of debits that stay below the lowest threshold costs one comparison per balance.
//
// # Clock
//
// None: the instants are those of the entries.
//
// # Concurrency
//
// The functions are pure.
//
// # Failure
//
// None.
package notice
