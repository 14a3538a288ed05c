// Package hints remembers what batches of operations have learned: which further balances the debits of a balance have needed, so that the next
// batch locks them at once, and what plan versions give of meters. A wrong balance costs a lock that was not needed; a missing one costs
// another transaction. Plan versions are immutable, so their allowances can be missing, but never wrong.
package hints
