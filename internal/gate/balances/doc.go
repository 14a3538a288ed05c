// Package balances keeps copies of balances, and decides what a check may do with them. The ledger in PostgreSQL has
// the balances themselves.
//
// # Terms
//
// A copy is a balance as of an instant. Its seq is the number of the balance's newest entry, so a copy with a higher
// seq is newer. Redis has the shared copies; each process has local copies in memory. A check uses the newer copy. A
// copy is confirmed when Redis has a copy of the balance that was made after this process announced that its checks
// read the balance. It is then at most a few milliseconds behind the ledger. Without Redis (local mode) the process
// is the only instance, and each of its copies is confirmed.
//
// A balance is wanted while checks of any instance read it, and for interestFor afterwards. Commits publish only
// wanted balances: other balances cost nothing in Redis.
//
// A copy is incomplete (BalanceCopy.Beyond) when overflow, overage or a subject's cap also decides about the balance.
// An incomplete copy shows only that its own units suffice.
//
// # What a check does with its copies
//
// Policy.For decides this, as a pure function. Each copy permits one action. The first line that matches applies:
//
//	copy                                                              PostgreSQL  Redis     action
//	missing, ended (ValidUntil), or incomplete and not sufficient     any         any       Read
//	complete, current terms, and no older than the caller's MaxStale,
//	or confirmed and no older than FreshFor                           any         any       Use, UseAndRefresh
//	any other                                                         away        any       UseDegraded
//	any other: incomplete, terms changed since, older than FreshFor,
//	from before checks of this process announced the balance,
//	or the caller named a MaxStale                                    up          any       ReadOrUse
//	unconfirmed, up to AwayFreshFor old                               up          away      UseDegraded
//	unconfirmed, up to FreshFor old                                   up          away      ReadWithin
//	unconfirmed, up to FreshFor old                                   up          up, lost  ReadIfSpare
//
// A check of several items takes the most careful of its copies' actions: Read before ReadOrUse, ReadIfSpare,
// ReadWithin, UseDegraded, UseAndRefresh and Use.
//
// # Invariants
//
//	B1  A copy is never replaced by an older one, neither in Redis nor in this process, until it has ended.
//	B2  A check that names no MaxStale gets a copy older than FreshFor only in an answer that is marked degraded. No
//	    check gets a copy after the instant of its next event (ValidUntil), when its period ends or a grant expires.
//	B3  Publish makes no call to Redis. A debit does not wait for the cache.
//
// # Announcements
//
// A check that reads a balance from Redis announces the balance (lua/interest.lua), at most every askAgain. Instances
// that commit read the announcements every learnEvery, or with the first commit afterwards. They keep unpublished
// copies for passedFor, and publish a copy if an announcement arrives in that time. An instance that could not read
// announcements for blindAfter publishes every copy. An instance with more than Config.LocalMax balances announces
// all balances. So the first check of a balance reads PostgreSQL, and the next checks use copies.
//
// # Held copies
//
// Redis announces when a copy that was read changes (redisstore.Watch). Until then this process uses the copy that it
// keeps, and does not read Redis. Such a copy may lack changes that were published in the last redisstore.HeldFor.
//
// # Staleness
//
// A copy of a wanted balance reaches Redis a few milliseconds after its COMMIT: publishGap plus two round trips. In
// the first moments in which a balance is wanted, the copy takes up to learnEvery. It takes up to blindAfter if an
// instance cannot reach Redis in these moments. If Redis lost an announcement that an instance had not read yet, the
// next copy comes after askAgain. It takes longer while Redis is away. The copy never arrives if the process dies
// first, or if more than pendingMax copies wait. Then checks get the older copy until it is FreshFor old; the next
// check reads PostgreSQL and publishes the result.
//
// An unconfirmed copy may be out of date, because another instance may have published a newer copy. PostgreSQL could
// answer, but it must not have to answer every check when Redis is away. So an unconfirmed copy answers for
// AwayFreshFor. After that only a few checks at a time read PostgreSQL (ReadWithin, ReadIfSpare); the other checks
// use their copies. These answers are marked degraded.
//
// New terms of a tenant that apply at once change its balances without writing them. A copy that is not at least
// TermsMargin younger than the change may lack it, and is not used while PostgreSQL answers.
//
// # Clock
//
// Copies carry instants of the ledger's clock. The caller of Policy.For passes the time of the same clock, as far as
// it is known without a query of PostgreSQL. If another instance's clock is wrong, its copies seem younger or older
// by the error of the clock. The error adds to the staleness above and has no other effect.
//
// # Concurrency
//
// All methods of a Cache may be called from any goroutine. A Cache with Redis has one goroutine, the publisher.
// Policy.For is pure.
//
// # Failure
//
// While Redis is away the newest copy of each balance waits, up to pendingMax of them. The publisher tries again,
// after pauses that double up to awayFor. A copy that Redis may have received is sent again: that changes nothing. On
// a cluster only the copies of a master that is away wait; the copies of the other masters are not late. A slot that
// moves delays no copy. Only freshness is lost: the ledger has the balances.
package balances
