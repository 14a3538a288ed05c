// Package reload keeps a copy in memory current: it reads when a change was announced, and periodically.
//
// # Terms
//
//   - read: one run of Config.Read, which reads what is stored and publishes it.
//   - announced: Trigger was called. Changes of this process are announced by their own transaction, those of others by PostgreSQL.
//
// # Invariants
//
//  1. After Trigger a read begins. Triggers before it begins share it.
//  2. Run's reads take at most a fifth of the time: a flood of changes must not become a flood of reads. A pause lasts at most half a second, so no
//     change waits longer than that and a read.
//  3. When CatchUp returns nil, a read has ended that began after all triggers before CatchUp. It reads at most once for each trigger, and nothing
//     without one.
//  4. Two reads never run at the same time.
//
// # Clock
//
// The process's, for pauses.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine; Run in one, which ends with its context. After a failed read the copy stays as it was, and Run tries
// again with growing pauses.
package reload
