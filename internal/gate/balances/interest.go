package balances

import (
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// interestFor is how long a balance is wanted after its last announcement. Until then commits publish the
	// balance, which takes 8 to 12 µs of CPU in this process and in Redis. Afterwards the next check reads PostgreSQL
	// once, which takes about 60 µs.
	interestFor = 30 * time.Second

	// askedFor is how long checks of this process rely on its own announcement. It is shorter than interestFor, and
	// the difference is more than the time of a message. So other instances publish the balance for longer than this
	// process relies on the announcement.
	askedFor = 25 * time.Second

	// askAgain is the age at which an announcement is repeated if checks still read the balance.
	askAgain = 10 * time.Second

	// askSlack is the time by which a copy may be older than the first announcement. It covers the read of PostgreSQL
	// that began with the announcement.
	askSlack = 500 * time.Millisecond

	// learnEvery is the period in which an instance that commits reads the announcements.
	learnEvery = 100 * time.Millisecond

	// blindAfter is the time after which an instance that could not read announcements publishes every copy.
	blindAfter = time.Second

	// passedFor is the shortest time for which an unpublished copy is kept, in case an announcement of its balance
	// arrives. It is longer than learnEvery and askSlack together.
	passedFor = 700 * time.Millisecond

	// passedMax is the largest number of unpublished copies in each of two generations. Further copies are published.
	passedMax = 32_768

	// forgetAtOnce is the largest number of entries that one call of forget examines.
	forgetAtOnce = 512
)

// everything is the id in an announcement of all balances.
const everything uint64 = 0

// idOf returns the FNV-1a hash of k, which is the same in all instances and below 2^53. If two balances have the same
// hash, an announcement of one balance also announces the other balance.
func idOf(k ledger.BalanceKey) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, part := range [...]string{k.Tenant, k.Meter, k.Subject} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		h = (h ^ '\n') * prime // no field contains a newline
	}
	return max(h>>11, everything+1)
}

// interest contains the wanted balances, and so decides which copies a commit must publish. It performs no I/O and
// reads no clock. The publisher exchanges announcements with the other instances through Redis. It is safe for
// concurrent use.
type interest struct {
	most int // largest number of balances that this process announces separately; if checks read more, it announces all

	mu      sync.Mutex
	began   time.Time                // the method since returns the time from this instant
	asked   map[uint64]asking        // balances that checks of this process read
	queue   []uint64                 // ids in asked that must be announced
	failing bool                     // the last announcement failed
	wanted  map[uint64]time.Duration // by id: when a balance stops being wanted, as the time since began

	learned time.Time // when this process last had all announcements; zero: never
	cursor  int64     // position after the last announcement that this process has read

	passed  [2]map[uint64]*ledger.BalanceCopy // newest unpublished copies: present and previous generation
	rotated time.Time                         // when the present generation began
	news    bool                              // commits occurred after learned
}

// asking is the state of this process's announcements of one balance.
type asking struct {
	from   int64         // µs of the ledger's clock: the first announcement; other instances read it within learnEvery
	sent   time.Duration // the last announcement, as the time since began; 0: not announced yet
	queued bool
}

func newInterest(most int) *interest {
	return &interest{
		most:  most,
		asked: map[uint64]asking{}, wanted: map[uint64]time.Duration{},
		passed: [2]map[uint64]*ledger.BalanceCopy{{}, {}},
	}
}

// since returns the time from began to now. began is earlier than all instants that are used here. A duration takes a
// third of the memory of an instant.
func (in *interest) since(now time.Time) time.Duration {
	if in.began.IsZero() {
		in.began = now.Add(-time.Hour)
	}
	return now.Sub(in.began)
}

// ask records that a check reads balances. It reports whether some balances must be announced.
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

// unsent removes from the queue up to announceMax balances that must be announced, and returns them. It also returns
// the cursor of the announcements that were read, and whether an exchange is due.
func (in *interest) unsent(now time.Time) (ids []uint64, cursor int64, due bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := min(announceMax, len(in.queue))
	ids = append(ids, in.queue[:n]...)
	in.queue = append(in.queue[:0], in.queue[n:]...)
	return ids, in.cursor, n > 0 || in.due(now)
}

// sent records the outcome of an announcement. A failed announcement is repeated. now and ledgerNow are the same
// instant, by the process's clock and by the ledger's clock.
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

// announceAgain queues all announced balances again, once per outage, because Redis may have lost the announcements.
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

// confirm sets Confirmed to false for copies that may lack commits from before the balance was announced.
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

// covers reports whether Redis receives all commits that are later than a copy of the instant asOf. It is true if
// that copy was made after this process announced the balance. The first of these commits may come up to learnEvery
// late.
func (a asking) covers(asOf int64, since time.Duration) bool {
	return a.sent != 0 && since-a.sent <= askedFor && asOf >= a.from-askSlack.Microseconds()
}

// choose returns the copies that must be published now, in the same array. It keeps the other copies for a while.
// learn is true if this process has not read the announcements for learnEvery. Then it must read them at once, and
// may have to publish some of the kept copies. A process without commits and without kept copies does not read
// announcements.
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

// due reports whether announcements must be read now: learnEvery has almost passed, and this process has commits, or
// keeps copies that other instances may need.
func (in *interest) due(now time.Time) bool {
	return in.waits() && now.Sub(in.learned) >= learnEvery*9/10
}

func (in *interest) waits() bool {
	return in.news || len(in.passed[0])+len(in.passed[1]) > 0
}

// learn adds announcements of all instances. It returns the kept copies that should have been published. complete is
// false if Redis has further announcements.
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

// blind returns the unpublished copies if this process could not read announcements for blindAfter, because other
// instances may need these copies.
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

// forget drops ended entries. Each call examines a part of the entries.
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
