// Package balances keeps copies of balances, and decides how a check may use them. The balances themselves are in the
// ledger in PostgreSQL.
//
// # Terms
//
// A copy is a balance as of an instant. Its seq is the number of the balance's newest entry, so a copy with a higher
// seq is newer. Redis has the shared copies. Each process has local copies in memory. A check uses the newer of both
// copies. A process announces the balances that its checks read. A copy is confirmed if Redis has a copy of the
// balance that was made after this announcement. A confirmed copy is at most a few milliseconds behind the ledger.
// Without Redis (local mode) the process is the only instance, and each of its copies is confirmed.
//
// A balance is wanted while checks of any instance read it, and for interestFor afterwards. Commits publish only
// wanted balances, so other balances cost nothing in Redis.
//
// A copy is incomplete (BalanceCopy.Beyond) if overflow, overage or a subject's cap also decides about debits of the
// balance. An incomplete copy can show only that its own units suffice.
//
// # How a check uses its copies
//
// Policy.For decides this, as a pure function. Each copy permits one action. The first row of the table that matches
// the copy and the state of PostgreSQL and Redis applies:
//
//	copy                                                              PostgreSQL  Redis     action
//	missing, ended (ValidUntil), or incomplete and not sufficient     any         any       Read
//	complete, current terms, and no older than the caller's MaxStale,
//	or confirmed and no older than FreshFor                           any         any       Use, UseAndRefresh
//	any other                                                         down        any       UseDegraded
//	any other: incomplete, terms changed since, older than FreshFor,
//	from before checks of this process announced the balance,
//	or the caller named a MaxStale                                    up          any       ReadOrUse
//	unconfirmed, up to AwayFreshFor old                               up          down      UseDegraded
//	unconfirmed, up to FreshFor old                                   up          down      ReadWithin
//	unconfirmed, up to FreshFor old                                   up          up, lost  ReadIfSpare
//
// A check of several items takes the most careful of the actions that its copies permit. The order is Read,
// ReadOrUse, ReadIfSpare, ReadWithin, UseDegraded, UseAndRefresh, Use.
//
// # Invariants
//
//	B1  An older copy never replaces a newer copy, neither in Redis nor in this process, until the newer copy has
//	    ended.
//	B2  If a check without MaxStale gets a copy older than FreshFor, its answer is marked degraded. No check gets a
//	    copy after the copy's ValidUntil, the instant of the next event: the period ends or a grant expires.
//	B3  Publish makes no call to Redis. A debit does not wait for the cache.
//
// # Announcements
//
// A check that reads a balance from Redis announces the balance (lua/interest.lua), at most once per askAgain. An
// instance that commits reads the announcements every learnEvery, or with its next commit. It keeps unpublished
// copies for passedFor, and publishes such a copy if an announcement of its balance arrives in that time. An instance
// that could not read announcements for blindAfter publishes every copy. An instance whose checks read more than
// Config.LocalMax balances announces all balances. The first check of a balance reads PostgreSQL, and the next checks
// use copies.
//
// # Held copies
//
// After this process has read a copy, Redis announces a change of the copy (redisstore.Watch). Until then this
// process uses the copy that it holds, and does not read Redis. Such a copy may lack changes that were published in
// the last redisstore.HeldFor.
//
// # Staleness
//
// A copy of a wanted balance reaches Redis a few milliseconds after its COMMIT: after publishGap plus two round
// trips. There are exceptions. Immediately after a balance becomes wanted, the copy takes up to learnEvery, or up to
// blindAfter if an instance cannot reach Redis in that time. If Redis lost an announcement that an instance had not
// read yet, the next copy comes after askAgain. While Redis is down, the copy waits. The copy never arrives if the
// process dies first, or if more than pendingMax copies wait. In that case checks get the older copy until it is
// FreshFor old. The next check then reads PostgreSQL and publishes the result.
//
// An unconfirmed copy may be out of date, because another instance may have published a newer copy. PostgreSQL could
// answer, but it must not have to answer every check while Redis is down. So an unconfirmed copy answers for
// AwayFreshFor. After that only a few checks at a time read PostgreSQL (ReadWithin, ReadIfSpare). The other checks
// use their copies, and their answers are marked degraded.
//
// New terms of a tenant that apply at once change its balances without writing them. A copy made less than
// TermsMargin after the change may lack the change. Such a copy is not used while PostgreSQL answers.
//
// # Clock
//
// Copies contain times of the ledger's clock. The caller of Policy.For passes the time of the same clock, as far as
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
// While Redis is down, the newest copy of each balance waits; at most pendingMax copies wait. The publisher tries
// again after pauses that double up to awayFor. If Redis may already have received a copy, the copy is sent again,
// which changes nothing. On a cluster only the copies of a master that is down wait. The copies of the other masters
// are not late. A slot that moves delays no copy. A failure of Redis costs only freshness, because the ledger has the
// balances.
package balances
