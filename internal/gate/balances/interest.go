package balances

import (
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// interestFor is how long a balance counts as asked about after its last announcement. Until then commits publish it: 8 to 12 µs of
	// CPU in this process and in Redis. Afterwards the next check reads PostgreSQL once: about 60 µs.
	interestFor = 30 * time.Second

	// askedFor is how long checks of this process rely on their own announcement. It is shorter than interestFor by more than what a
	// message takes, so that the others publish for longer than this process relies on it.
	askedFor = 25 * time.Second

	// askAgain is the age at which an announcement is repeated if checks still ask.
	askAgain = 10 * time.Second

	// askSlack is how much older than the first announcement a copy may be. It covers the read of PostgreSQL that began with it.
	askSlack = 500 * time.Millisecond

	// learnEvery is how often an instance that commits learns what is asked about.
	learnEvery = 100 * time.Millisecond

	// blindAfter is how old that knowledge may be. An instance that knows less publishes everything.
	blindAfter = time.Second

	// passedFor is how long a copy that was not published is kept, at least, for the case that somebody turns out to have asked for it.
	// It is longer than learnEvery and askSlack together.
	passedFor = 700 * time.Millisecond

	// passedMax bounds these copies in each of two generations. Beyond, copies are published.
	passedMax = 32_768

	// forgetAtOnce bounds the entries that are examined at a time for having ended.
	forgetAtOnce = 512
)

// everything stands for all balances, as an id.
const everything uint64 = 0

// idOf returns the FNV-1a hash of k, the same in all instances and below 2^53. If two balances share one, both are published.
func idOf(k ledger.BalanceKey) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, part := range [...]string{k.Tenant, k.Meter, k.Subject} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		h = (h ^ '\n') * prime // no part contains it
	}
	return max(h>>11, everything+1)
}

// interest knows about which balances checks ask, and so which copies a commit has to publish. It performs no I/O and reads no clock:
// the publisher exchanges announcements with the other instances through Redis. It is safe for concurrent use.
type interest struct {
	most int // balances that this process announces one by one. Beyond, it asks for all of them: everything is published then

	mu      sync.Mutex
	began   time.Time                // what since counts from
	asked   map[uint64]asking        // by checks of this process
	queue   []uint64                 // of asked: to be announced
	failing bool                     // the last announcement failed
	wanted  map[uint64]time.Duration // by checks of any process: until when, as since

	learned time.Time // when this process last knew all announcements; zero: never
	cursor  int64     // of the announcements it knows

	passed  [2]map[uint64]*ledger.BalanceCopy // the newest copies that were not published: of late, and before
	rotated time.Time                         // when passed[0] began
	news    bool                              // there were commits since learned
}

// asking is what this process knows of its own announcements of a balance.
type asking struct {
	from   int64         // µs of the ledger's clock: when it was first announced; the others know after learnEvery
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

// since returns the time since began, which is long before anything that happens here. It takes a third of the memory of an instant.
func (in *interest) since(now time.Time) time.Duration {
	if in.began.IsZero() {
		in.began = now.Add(-time.Hour)
	}
	return now.Sub(in.began)
}

// ask notes that a check asks about balances. It reports whether there is something to announce.
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

// unsent removes up to announceMax balances that are to be announced and returns them, with the cursor of what is known. due: there is a
// reason for an exchange.
func (in *interest) unsent(now time.Time) (ids []uint64, cursor int64, due bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := min(announceMax, len(in.queue))
	ids = append(ids, in.queue[:n]...)
	in.queue = append(in.queue[:0], in.queue[n:]...)
	return ids, in.cursor, n > 0 || in.due(now)
}

// sent notes the outcome of an announcement. One that failed is to be made again. ledgerNow is now on the clock of copies.
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

// announceAgain queues all that is announced, once per outage: Redis may come back without the announcements.
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

// confirm takes the confirmation from copies of keys that may miss what was committed before anybody asked about them.
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

// covers reports whether a copy of asOf in Redis is followed by all later ones, the first of them learnEvery late: it was made after this process
// announced the balance.
func (a asking) covers(asOf int64, since time.Duration) bool {
	return a.sent != 0 && since-a.sent <= askedFor && asOf >= a.from-askSlack.Microseconds()
}

// choose returns those of copies that have to be published now, in their array. It keeps the others for a while. learn: they are to be chosen
// again at once, because this process has not learned for learnEvery what is asked about. An idle one learns nothing.
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

// due reports whether it is time to learn what is asked about: this process commits, or keeps copies for which somebody may have asked.
func (in *interest) due(now time.Time) bool {
	return in.waits() && now.Sub(in.learned) >= learnEvery*9/10
}

func (in *interest) waits() bool {
	return in.news || len(in.passed[0])+len(in.passed[1]) > 0
}

// learn takes announcements of all instances and returns the copies that should have been published. complete: these are the
// last ones that there are.
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

// blind returns the copies that were not published, once this process could not read announcements for blindAfter: other
// instances may need them.
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

// forget drops what has ended, a part at a time.
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
