package balances

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// fleet is a model of some instances with one Redis, one ledger and one clock. It implements lua/interest.lua and
// lua/balances.lua in Go.
type fleet struct {
	t         *rapid.T
	now       time.Time
	instances []*interest
	notes     []note
	shared    map[string]*ledger.BalanceCopy   // the copies in Redis
	committed map[string][]*ledger.BalanceCopy // the commits in the ledger, oldest first
}

type note struct {
	at time.Time
	id uint64
}

func newFleet(t *rapid.T, n int) *fleet {
	f := &fleet{t: t, now: time.Unix(1_700_000_000, 0), shared: map[string]*ledger.BalanceCopy{}, committed: map[string][]*ledger.BalanceCopy{}}
	for range n {
		f.instances = append(f.instances, newInterest(defaultLocalMax))
	}
	return f
}

// put stores copies as the balances script does.
func (f *fleet) put(copies []*ledger.BalanceCopy) {
	for _, c := range copies {
		if old := f.shared[c.Tenant]; old == nil || c.Seq > old.Seq {
			f.shared[c.Tenant] = c
		}
	}
}

// pass advances the clock by d. Instances exchange announcements at most step after the exchange is due. down
// contains, for each instance, the instant until which its exchanges fail.
func (f *fleet) pass(d time.Duration, down []time.Time) {
	const step = 50 * time.Millisecond
	for end := f.now.Add(d); ; {
		waiting := false
		for i, in := range f.instances {
			if len(in.queue) > 0 || in.due(f.now) {
				f.exchange(i, f.now.Before(down[i]))
			}
			waiting = waiting || in.waits() || len(in.queue) > 0
		}
		if !f.now.Before(end) {
			return
		}
		if f.now = f.now.Add(step); !waiting || f.now.After(end) {
			f.now = end
		}
	}
}

// commit commits a debit in instance i.
func (f *fleet) commit(i int, tenant string) {
	seq := int64(len(f.committed[tenant])) + 1
	c := copyOf(tenant, seq, f.now)
	f.committed[tenant] = append(f.committed[tenant], c)
	f.choose(i, c)
}

// choose passes a copy to instance i, which publishes or keeps it.
func (f *fleet) choose(i int, c *ledger.BalanceCopy) {
	chosen, _ := f.instances[i].choose([]*ledger.BalanceCopy{c}, f.now)
	f.put(chosen)
}

// exchange makes one exchange of announcements for instance i. If lost is set, the exchange does not reach Redis.
func (f *fleet) exchange(i int, lost bool) {
	in := f.instances[i]
	ids, cursor, _ := in.unsent(f.now)
	if lost {
		in.sent(ids, false, f.now, f.now)
		f.put(in.blind(f.now))
		return
	}
	for _, id := range ids {
		f.notes = append(f.notes, note{f.now, id})
	}
	var heard []uint64
	for _, n := range f.notes {
		if n.at.UnixMilli() >= cursor && f.now.Sub(n.at) < interestFor {
			heard = append(heard, n.id)
		}
	}
	in.sent(ids, true, f.now, f.now)
	f.put(in.learn(heard, f.now.UnixMilli(), true, f.now))
}

// check checks a balance in instance i. If the copy in Redis is not confirmed and fresh, it reads PostgreSQL. The
// test fails if the check relies on a copy that lacks a commit older than the time `bound`.
func (f *fleet) check(i int, tenant string, bound time.Duration) {
	in, keys := f.instances[i], []ledger.BalanceKey{{Tenant: tenant, Meter: "m"}}
	in.ask(keys, f.now)
	c, all := f.shared[tenant], f.committed[tenant]
	cached := []Cached{{Copy: c, Confirmed: c != nil}}
	if in.confirm(cached, keys, f.now); cached[0].Confirmed && f.now.Sub(c.AsOf) <= defaultFreshFor {
		for _, missed := range all[c.Seq:] {
			if age := f.now.Sub(missed.AsOf); age > bound {
				f.t.Fatalf("a check at %s relies on seq %d of %s: seq %d was committed %s ago", f.now.Format("05.000"), c.Seq, c.AsOf.Format("05.000"), missed.Seq, age)
			}
		}
		return
	}
	if len(all) > 0 { // the check reads PostgreSQL
		read := *all[len(all)-1]
		read.AsOf = f.now
		f.choose(i, &read)
	}
}

// A copy on which a check relies lacks no commit that is older than a second plus the time of an exchange. This is
// true even while exchanges fail, because an instance that cannot read announcements publishes every copy after a
// second.
func TestInterest_CopyInUse_MissesNoCommit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { runFleet(t, 5000, time.Second+200*time.Millisecond) })
}

// While Redis answers, a copy in use lacks only commits of the time between two exchanges. It lacks such commits only
// immediately after an announcement.
func TestInterest_RedisUp_LateByOneExchangeAtMost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { runFleet(t, 0, learnEvery+50*time.Millisecond) })
}

// runFleet runs random commits, checks and pauses. In the longer pauses announcements and copies end. Exchanges of an
// instance fail for up to downMax ms. A check must not miss a commit that is older than bound.
func runFleet(t *rapid.T, downMax int, bound time.Duration) {
	f := newFleet(t, rapid.IntRange(1, 3).Draw(t, "instances"))
	down := make([]time.Time, len(f.instances))
	for range rapid.IntRange(1, 200).Draw(t, "steps") {
		pause := time.Duration(rapid.IntRange(0, 60).Draw(t, "ms")) * time.Millisecond
		if rapid.IntRange(0, 30).Draw(t, "idle") == 0 {
			pause = rapid.SampledFrom([]time.Duration{300 * time.Millisecond, 2 * time.Second, 11 * time.Second, 26 * time.Second, 40 * time.Second}).Draw(t, "pause")
		}
		f.pass(pause, down)
		i := rapid.IntRange(0, len(f.instances)-1).Draw(t, "instance")
		tenant := strconv.Itoa(rapid.IntRange(0, 2).Draw(t, "tenant"))
		switch rapid.SampledFrom([]string{"commit", "commit", "check", "check", "down"}).Draw(t, "act") {
		case "commit":
			f.commit(i, tenant)
		case "check":
			f.check(i, tenant, bound)
		case "down":
			down[i] = f.now.Add(time.Duration(rapid.IntRange(0, downMax).Draw(t, "down")) * time.Millisecond)
		}
	}
}

func TestInterest_Bounded_AsksForEverything(t *testing.T) {
	t.Parallel()
	in, now := newInterest(defaultLocalMax), time.Unix(1_700_000_000, 0)
	keys := make([]ledger.BalanceKey, defaultLocalMax+2)
	for i := range keys {
		keys[i] = keyOf(copyOf(strconv.Itoa(i), 1, now))
	}
	in.ask(keys, now)
	require.True(t, len(in.asked) == defaultLocalMax+1 && slices.Contains(in.queue, everything),
		"%d balances are asked about, want %d and everything", len(in.asked), defaultLocalMax)
	for ids, _, due := in.unsent(now); due; ids, _, due = in.unsent(now) {
		in.sent(ids, true, now, now)
	}
	beyond := copyOf("beyond", 1, now)
	cached := []Cached{{Copy: beyond, Confirmed: true}}
	in.confirm(cached, []ledger.BalanceKey{keyOf(beyond)}, now)
	assert.True(t, cached[0].Confirmed, "a balance beyond the bound is not covered")
	in.learn([]uint64{everything}, 1, true, now)
	got, _ := in.choose([]*ledger.BalanceCopy{beyond}, now)
	assert.Len(t, got, 1, "a balance beyond the bound is not published")
	if in.sent([]uint64{idOf(keys[0])}, false, now, now); len(in.queue) != len(in.asked)+1 {
		t.Errorf("after a failure %d of %d announcements are made again", len(in.queue), len(in.asked))
	}
	later := now.Add(time.Minute)
	in.confirm(cached, []ledger.BalanceKey{keyOf(beyond)}, later)
	assert.False(t, cached[0].Confirmed, "an announcement of a minute ago still counts")
}

func TestInterest_PassedCopies_AreBounded(t *testing.T) {
	t.Parallel()
	in, now := newInterest(defaultLocalMax), time.Unix(1_700_000_000, 0)
	in.learn(nil, 1, true, now)
	var published int
	for i := range passedMax + 10 {
		chosen, _ := in.choose([]*ledger.BalanceCopy{copyOf(strconv.Itoa(i), 1, now)}, now)
		published += len(chosen)
	}
	assert.True(t, published == 10 && len(in.passed[0]) == passedMax,
		"%d copies were published and %d kept, want 10 and %d", published, len(in.passed[0]), passedMax)
}

func TestPublish_NobodyAsks_NothingReachesRedis(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	a, b := startCache(t, url, Config{}), startCache(t, url, Config{})
	warm := copyOf("warm", 1, time.Now())
	b.watch(t, keyOf(warm))
	a.learns(t, keyOf(warm))
	unread, read := copyOf("unread", 5, time.Now()), copyOf("warm", 2, time.Now())
	a.Publish([]ledger.BalanceCopy{*unread, *read})
	testenv.Eventually(t, func() bool { return b.seenSeq(t, keyOf(read)) == 2 }, "the balance that is asked about arrives")
	names := []string{redisKey(keyOf(unread))}
	texts, err := b.redis.store.ReadAll(t.Context(), names)
	assert.True(t, err == nil && texts[0] == "", "redis has %q of a balance that nobody asks about (%v)", texts, err)

	// The first check finds no copy on which it may rely. Because of this check, the cache `a` publishes the copies
	// that it had kept.
	got, _ := b.readOne(t, keyOf(unread))
	assert.False(t, got.Confirmed, "the first check relies on %+v", got.Copy)
	testenv.Eventually(t, func() bool { return b.seenSeq(t, keyOf(unread)) == 5 }, "what was passed over arrives")
}

// Redis has an old copy from a time when checks read the balance. Later no check read the balance, so later debits
// were not published.
func TestLookup_CopyFromBeforeTheQuestion_IsNotConfirmed(t *testing.T) {
	t.Parallel()
	url := testenv.RedisURL(t)
	a, b := startCache(t, url, Config{}), startCache(t, url, Config{})
	old := copyOf("acme", 3, time.Now().Add(-10*time.Second))
	a.Publish([]ledger.BalanceCopy{*old}) // `a` has read no announcements, so it publishes every copy
	testenv.Eventually(t, func() bool {
		texts, err := b.redis.store.ReadAll(t.Context(), []string{redisKey(keyOf(old))})
		return err == nil && texts[0] != ""
	}, "the copy is in redis")
	b.watch(t, keyOf(old))
	if got, fromRedis := b.readOne(t, keyOf(old)); got.Confirmed || !fromRedis || got.Copy == nil {
		t.Errorf("got %+v, from redis %v; want the old copy, unconfirmed", got, fromRedis)
	}
	b.Publish([]ledger.BalanceCopy{*copyOf("acme", 3, time.Now())}) // the result of the check's read of PostgreSQL
	got, _ := b.readOne(t, keyOf(old))
	assert.True(t, got.Confirmed, "got %+v after a read of PostgreSQL; want it confirmed", got)
}
