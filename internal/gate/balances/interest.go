package balances

import (
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// interestFor is how long a balance counts as wanted after its last announcement. Until then commits publish it,
	// which takes 8 to 12 µs of CPU in this process and in Redis. Afterwards the next check reads PostgreSQL once,
	// which takes about 60 µs.
	interestFor = 30 * time.Second

	// askedFor is how long checks of this process rely on their own announcement. It is shorter than interestFor by
	// more than the time of a message. So other instances publish for longer than this process relies on the
	// announcement.
	askedFor = 25 * time.Second

	// askAgain is the age at which an announcement is repeated if checks still read the balance.
	askAgain = 10 * time.Second

	// askSlack is how much older than the first announcement a copy may be. It covers the read of PostgreSQL that
	// began with the announcement.
	askSlack = 500 * time.Millisecond

	// learnEvery is how often an instance that commits reads the announcements.
	learnEvery = 100 * time.Millisecond

	// blindAfter is the longest time since an instance has read the announcements. After a longer time the instance
	// publishes every copy.
	blindAfter = time.Second

	// passedFor is how long an unpublished copy is kept, at least, in case an announcement of its balance arrives. It
	// is longer than learnEvery and askSlack together.
	passedFor = 700 * time.Millisecond

	// passedMax bounds the unpublished copies in each of two generations. Further copies are published.
	passedMax = 32_768

	// forgetAtOnce bounds the entries that one call of forget examines.
	forgetAtOnce = 512
)

// everything is the id that means all balances.
const everything uint64 = 0

// idOf returns the FNV-1a hash of k, which is the same in all instances and below 2^53. If two balances have the same
// hash, both are published.
func idOf(k ledger.BalanceKey) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, part := range [...]string{k.Tenant, k.Meter, k.Subject} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		h = (h ^ '\n') * prime // no part contains a newline
	}
	return max(h>>11, everything+1)
}

// interest tracks which balances are wanted, and so which copies a commit has to publish. It performs no I/O and reads
// no clock: the publisher exchanges announcements with the other instances through Redis. It is safe for concurrent
// use.
type interest struct {
	most int // balances that this process announces one by one. With more it announces all: everything is published then

	mu      sync.Mutex
	began   time.Time                // the instant from which since counts
	asked   map[uint64]asking        // balances that checks of this process read
	queue   []uint64                 // ids in asked that must be announced
	failing bool                     // the last announcement failed
	wanted  map[uint64]time.Duration // until when balances that checks of any process read are wanted, as since

	learned time.Time // when this process last had read all announcements; zero: never
	cursor  int64     // position after the last announcement that it has read

	passed  [2]map[uint64]*ledger.BalanceCopy // newest unpublished copies: the present generation, and the previous one
	rotated time.Time                         // when passed[0] began
	news    bool                              // there were commits since learned
}

// asking is the state of this process's own announcements of a balance.
type asking struct {
	from   int64         // µs of the ledger's clock: when it was first announced; other instances have read it after learnEvery
	sent   time.Duration // last announced, as since; 0: not yet
	queued bool
}

func newInterest(most int) *interest {
	return &interest{
		most:  most,
		asked: map[uint64]asking{}, wanted: map[uint64]time.Duration{},
		passed: [2]map[uint64]*ledger.BalanceCopy{{}, {}},
	}
}

// since returns the time since began. began is earlier than any instant here. A duration takes a third of an instant's
// memory.
func (in *interest) since(now time.Time) time.Duration {
	if in.began.IsZero() {
		in.began = now.Add(-time.Hour)
	}
	return now.Sub(in.began)
}

// ask records that a check reads balances. It reports whether there is something to announce.
func (in *interest) ask(keys []ledger.BalanceKey, now time.Time) (news bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	since := in.since(now)
	for i := range keys {
		id := idOf(keys[i])
		a, known := in.asked[id]
		if !known && len(in.asked) >= in.most {
			id = everything
			a, known = in.asked[id]
		}
		if a.queued || known && since-a.sent < askAgain {
			continue
		}
		a.queued, news = true, true
		in.asked[id] = a
		in.queue = append(in.queue, id)
	}
	return news
}

// unsent removes and returns up to announceMax balances that are to be announced. It also returns the cursor of the
// announcements that were read, and whether an exchange is due.
func (in *interest) unsent(now time.Time) (ids []uint64, cursor int64, due bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := min(announceMax, len(in.queue))
	ids = append(ids, in.queue[:n]...)
	in.queue = append(in.queue[:0], in.queue[n:]...)
	return ids, in.cursor, n > 0 || in.due(now)
}

// sent records the outcome of an announcement. A failed announcement is repeated. ledgerNow is now on the clock of
// copies.
func (in *interest) sent(ids []uint64, ok bool, now, ledgerNow time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !ok {
		in.queue = append(in.queue, ids...)
		in.announceAgain()
		return
	}
	in.failing = false
	since := in.since(now)
	for _, id := range ids {
		a := in.asked[id]
		if since-a.sent > askedFor {
			a.from = ledgerNow.UnixMicro()
		}
		a.sent, a.queued = since, false
		in.asked[id] = a
	}
}

// announceAgain queues all announced balances again, once per outage: Redis may come back without the announcements.
func (in *interest) announceAgain() {
	if in.failing {
		return
	}
	in.failing = true
	for id, a := range in.asked {
		if !a.queued {
			a.queued = true
			in.asked[id] = a
			in.queue = append(in.queue, id)
		}
	}
}

// confirm withdraws the confirmation of copies of keys that may lack commits from before the balance was announced.
func (in *interest) confirm(copies []Cached, keys []ledger.BalanceKey, now time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	since := in.since(now)
	for i := range copies {
		if cached := &copies[i]; cached.Confirmed {
			asOf := cached.Copy.AsOf.UnixMicro()
			cached.Confirmed = in.asked[idOf(keys[i])].covers(asOf, since) || in.asked[everything].covers(asOf, since)
			cached.Unwanted = !cached.Confirmed
		}
	}
}

// covers reports whether Redis receives all copies that are later than a copy of asOf; the first of them may come up
// to learnEvery late. This is so if the copy of asOf was made after this process announced the balance.
func (a asking) covers(asOf int64, since time.Duration) bool {
	return a.sent != 0 && since-a.sent <= askedFor && asOf >= a.from-askSlack.Microseconds()
}

// choose returns the copies that must be published now, in the same array. It keeps the other copies for a while.
// learn is true if this process has not read the announcements for learnEvery. Then it must read them at once, and
// may have to publish some of the kept copies. An idle process does not read announcements.
func (in *interest) choose(copies []*ledger.BalanceCopy, now time.Time) (chosen []*ledger.BalanceCopy, learn bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.news = true
	learn = in.due(now)
	if now.Sub(in.learned) > blindAfter || in.isWanted(everything, now) {
		return copies, learn
	}
	out := copies[:0]
	for _, c := range copies {
		id := idOf(ledger.BalanceKey{Tenant: c.Tenant, Meter: c.Meter, Subject: c.Subject})
		if in.isWanted(id, now) || len(in.passed[0]) >= passedMax {
			out = append(out, c)
		} else if old := in.passed[0][id]; old == nil || c.Seq >= old.Seq {
			in.passed[0][id] = c
		}
	}
	return out, learn
}

func (in *interest) isWanted(id uint64, now time.Time) bool { return in.since(now) < in.wanted[id] }

// due reports whether it is time to read announcements: this process commits, or keeps copies that other instances may
// want.
func (in *interest) due(now time.Time) bool {
	return in.waits() && now.Sub(in.learned) >= learnEvery*9/10
}

func (in *interest) waits() bool {
	return in.news || len(in.passed[0])+len(in.passed[1]) > 0
}

// learn takes announcements of all instances and returns the kept copies that should have been published. complete
// says that there are no further announcements.
func (in *interest) learn(ids []uint64, cursor int64, complete bool, now time.Time) []*ledger.BalanceCopy {
	in.mu.Lock()
	defer in.mu.Unlock()
	var late []*ledger.BalanceCopy
	for _, id := range ids {
		began := !in.isWanted(id, now)
		in.wanted[id] = in.since(now) + interestFor
		for _, passed := range in.passed {
			switch c := passed[id]; {
			case !began:
			case id == everything:
				for _, c := range passed {
					late = append(late, c)
				}
			case c != nil:
				late = append(late, c)
			}
		}
	}
	in.cursor = cursor
	if complete {
		in.learned, in.news = now, false
		in.forget(now)
	}
	return late
}

// blind returns the unpublished copies if this process could not read announcements for blindAfter: other instances
// may need these copies.
func (in *interest) blind(now time.Time) []*ledger.BalanceCopy {
	in.mu.Lock()
	defer in.mu.Unlock()
	if now.Sub(in.learned) <= blindAfter {
		return nil
	}
	var late []*ledger.BalanceCopy
	for _, passed := range in.passed {
		for _, c := range passed {
			late = append(late, c)
		}
		clear(passed)
	}
	return late
}

// forget drops entries that have ended, a part at a time.
func (in *interest) forget(now time.Time) {
	if now.Sub(in.rotated) >= passedFor {
		in.passed[0], in.passed[1], in.rotated = in.passed[1], in.passed[0], now
		clear(in.passed[0])
	}
	n, since := 0, in.since(now)
	for id, until := range in.wanted {
		if n++; n > forgetAtOnce {
			break
		}
		if since > until {
			delete(in.wanted, id)
		}
	}
	n = 0
	for id, a := range in.asked {
		if n++; n > forgetAtOnce {
			break
		}
		if !a.queued && since-a.sent > askedFor {
			delete(in.asked, id)
		}
	}
}
