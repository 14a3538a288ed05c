package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule/oracle"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// world is the input that a model test varies: a few rules, whose versions change over time, and a clock.
type world struct {
	now    int64 // us
	rules  []*rule.Rule
	denied int // number of next requests that cost the whole capacity; most of them are denied
}

// worldStart is a time in 2026, in µs, so that the numbers are as large as in real use.
const worldStart = int64(1_790_000_000_123_456)

func drawWorld(t *rapid.T) *world {
	w := &world{now: worldStart}
	for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
		w.rules = append(w.rules, drawRule(t, fmt.Sprintf("rule-%d", i)))
	}
	return w
}

// drawRule returns a random rule of a random kind.
func drawRule(t *rapid.T, id string) *rule.Rule {
	return drawRuleOf(t, id, rule.Kind(rapid.IntRange(int(rule.KindTokenBucket), int(rule.KindSlidingLog)).Draw(t, "kind")))
}

// drawRuleOf returns a random rule of a kind. Its rate may divide evenly or not, its burst is between one token and
// the largest exact burst, and it may have a calendar.
func drawRuleOf(t *rapid.T, id string, kind rule.Kind) *rule.Rule {
	periods := []time.Duration{
		time.Millisecond, 30 * time.Millisecond, time.Second, 30 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
	}
	rate := rule.Rate{
		Count:  rapid.OneOf(rapid.Int64Range(1, 10), rapid.SampledFrom([]int64{7, 1000, 999_983, 1_000_000})).Draw(t, "count"),
		Period: rapid.SampledFrom(periods).Draw(t, "period"),
	}
	spec := rule.Spec{ID: id, Kind: kind.String(), Shadow: rapid.IntRange(0, 4).Draw(t, "shadow") == 0}
	capacity, most := rate.Count, int64(bound.MaxAmount)
	switch kind {
	case rule.KindTokenBucket, rule.KindLeakyBucket:
		largest := bound.MaxAmount / oracle.UnitsPerToken(rate.Count, rate.Period.Microseconds()).Int64()
		capacity = rapid.OneOf(
			rapid.Int64Range(1, min(10, largest)), rapid.Int64Range(1, min(1000, largest)), rapid.Just(largest),
		).Draw(t, "burst")
		spec.Burst, most = capacity, largest
	case rule.KindFixedWindow:
		spec.Zone = drawZone(t)
		if rapid.IntRange(0, 4).Draw(t, "month") == 0 {
			rate.Period, rate.Month = 31*24*time.Hour, true
		}
	case rule.KindSlidingWindow:
		if rapid.IntRange(0, 4).Draw(t, "largest") == 0 {
			rate.Count = rapid.SampledFrom([]int64{bound.MaxAmount / rate.Period.Microseconds(), bound.MaxAmount / rate.Period.Milliseconds()}).Draw(t, "most")
			capacity = rate.Count
		}
		most = bound.MaxAmount / rate.Period.Milliseconds()
	case rule.KindSlidingLog:
		rate.Count = min(rate.Count, 12)
		capacity, most = rate.Count, 30
	}
	if most > capacity && rapid.Bool().Draw(t, "owes") {
		spec.Debt = rapid.OneOf(rapid.Int64Range(1, min(20, most-capacity)), rapid.Int64Range(1, min(capacity, most-capacity))).Draw(t, "debt")
	}
	if rapid.IntRange(0, 2).Draw(t, "bans") == 0 {
		times := rapid.SampledFrom([]string{"1ms", "1s", "1m", "30h"})
		spec.Ban = rule.BanSpec{After: rapid.Int64Range(1, 4).Draw(t, "after"), Within: times.Draw(t, "within"), For: times.Draw(t, "for")}
	}
	spec.Rate, spec.Cost = rate.String(), rapid.Int64Range(1, min(3, capacity)).Draw(t, "rule cost")
	return compile(t, spec)
}

// drawZone returns nil, UTC, or a zone whose windows begin at other times or have clock changes.
func drawZone(t *rapid.T) *time.Location {
	name := rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"}).Draw(t, "zone")
	if name == "" {
		return nil
	}
	return zone(t, name)
}

// step moves the clock, or changes a rule.
func (w *world) step(t *rapid.T) {
	switch rapid.IntRange(0, 10).Draw(t, "step") {
	case 0: // the same instant
	case 1, 2, 3:
		w.now += rapid.Int64Range(1, 2000).Draw(t, "us")
	case 4, 5:
		w.now += rapid.Int64Range(1, 5_000_000).Draw(t, "us")
	case 6:
		w.now += rapid.Int64Range(1, 100_000).Draw(t, "s") * 1_000_000
	case 7: // the clock is set back
		w.now -= rapid.SampledFrom([]int64{1, 1000, 4_000_000, 5_000_000, 5_000_001, 3_600_000_000}).Draw(t, "back")
	case 8:
		w.changeRule(t)
	case 9: // the clock stays; the step is only a request
	case 10: // the clock moves to within 3 us of the end of a minute, when many windows end
		w.now += 60_000_000 - w.now%60_000_000 + rapid.Int64Range(-3, 3).Draw(t, "off")
	}
}

// changeRule replaces a rule by a new version, usually of the same kind. If the kind changes, the rule has new
// buckets.
func (w *world) changeRule(t *rapid.T) {
	i := rapid.IntRange(0, len(w.rules)-1).Draw(t, "changed")
	if rapid.IntRange(0, 9).Draw(t, "other kind") == 0 {
		w.rules[i] = drawRule(t, w.rules[i].ID)
	} else {
		w.rules[i] = drawRuleOf(t, w.rules[i].ID, w.rules[i].Kind)
	}
	if rapid.Bool().Draw(t, "denials only") {
		w.denied = rapid.IntRange(1, 10).Draw(t, "denials")
	}
}

// drawRequest returns a random operation, and a random request on some of the rules.
func (w *world) drawRequest(t *rapid.T, tenant string) (rule.Op, Request) {
	req := Request{Tenant: tenant}
	if w.denied > 0 {
		w.denied--
		for _, r := range w.rules {
			req.Charges = append(req.Charges, Charge{Rule: r, Cost: r.Burst})
		}
		return rapid.SampledFrom([]rule.Op{rule.Consume, rule.Peek}).Draw(t, "op"), req
	}
	for _, r := range w.rules {
		if rapid.IntRange(0, 3).Draw(t, "matched") == 0 {
			continue
		}
		c := Charge{Rule: r}
		if rapid.Bool().Draw(t, "dimension") {
			c.Dimension = rule.Dimension(rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "subject"))
		}
		if r.Kind == rule.KindFixedWindow && rapid.IntRange(0, 5).Draw(t, "own calendar") == 0 {
			c.Zone = drawZone(t)
		}
		c.Cost = rapid.OneOf(
			rapid.Just(int64(0)), rapid.Int64Range(1, min(20, r.Burst+1)), rapid.Int64Range(1, r.Burst),
			rapid.SampledFrom([]int64{r.Burst, min(r.Burst+1, bound.MaxAmount), bound.MaxAmount}),
		).Draw(t, "cost")
		req.Charges = append(req.Charges, c)
	}
	return rapid.SampledFrom([]rule.Op{rule.Consume, rule.Consume, rule.Consume, rule.Consume, rule.Late, rule.Peek, rule.Refund}).Draw(t, "op"), req
}

func oracleCharges(q *query) []oracle.Charge {
	charges := make([]oracle.Charge, len(q.charges))
	for i, c := range q.charges {
		charges[i] = oracle.Charge{
			Kind: c.rule.Kind, Key: c.key, Count: c.rule.Rate.Count, Period: c.rule.Rate.Period.Microseconds(), Month: c.rule.Rate.Month,
			Zone: c.zone, Capacity: c.rule.Burst, Debt: c.rule.Debt, Ban: c.rule.Ban, Cost: c.cost, Taken: c.taken, Shadow: c.rule.Shadow,
		}
	}
	return charges
}

// sameDecision fails the test unless a decision equals the oracle's decision exactly.
func sameDecision(t *rapid.T, charges []charge, d Decision, allowed bool, rows []oracle.Row) {
	require.Equal(t, allowed, d.Allowed, "allowed %v, the oracle says %v", d.Allowed, allowed)
	for i, v := range d.Verdicts {
		got := oracle.Row{
			Remaining: v.Remaining, Retry: v.RetryAfter.Microseconds(), Next: v.Next.Microseconds(), Reset: v.Reset.Microseconds(),
			Delay: v.Delay.Microseconds(), Taken: v.Charged, Banned: v.Banned.Microseconds(),
		}
		switch {
		case v.Never:
			got.Code = rule.Never
		case !v.Allowed:
			got.Code = rule.Denied
		}
		if charges[i].taken != rule.UnknownTime {
			got.Delay = rows[i].Delay // a charge of earlier work has no delay
		}
		require.True(t, got == rows[i],
			"verdict %d on %s %s is %+v, the oracle says %+v", i, v.Rule.Kind, v.Rule.Rate, got, rows[i])
		require.True(t, v.Limit == v.Rule.Burst && !v.Unknown,
			"verdict %d: limit %d of %d, unknown %v", i, v.Limit, v.Rule.Burst, v.Unknown)
	}
}

// charged contains the charged requests, which can be refunded, or charged with more.
type charged struct{ all []Request }

// draw returns req. If the operation is a refund, or a charge after the fact, draw often returns one of the last charged
// requests instead, with the present versions of its rules.
func (c *charged) draw(t *rapid.T, w *world, what rule.Op, req Request) Request {
	if what != rule.Refund && what != rule.Late || len(c.all) == 0 || rapid.IntRange(0, 3).Draw(t, "by hand") == 0 {
		return req
	}
	req = c.all[rapid.IntRange(max(0, len(c.all)-5), len(c.all)-1).Draw(t, "of")]
	req.Charges = slices.Clone(req.Charges)
	for i := range req.Charges {
		for _, r := range w.rules {
			if req.Charges[i].Rule.ID == r.ID && req.Charges[i].Rule.Kind == r.Kind {
				req.Charges[i].Rule = r
			}
		}
	}
	return req
}

func (c *charged) add(d Decision, req Request) {
	if taken := d.Charged(req); len(taken.Charges) > 0 {
		c.all = append(c.all, taken)
	}
}

func TestLocalState_EqualsTheOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, o := drawWorld(t), oracle.New()
		all := newLocalState(0, NewMetrics(nil))
		var given charged
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step(t)
			what, req := w.drawRequest(t, "acme")
			req = given.draw(t, w, what, req)
			q := testenv.Must(t).Get(req.check(what))
			// Normally unneeded levels are dropped at other times. Here they are dropped before each request, and in
			// the oracle, too.
			o.Forget(w.now)
			for s := range all.stripes {
				maps.DeleteFunc(all.stripes[s].all, func(_ string, e localLevel) bool { return e.fullAt <= w.now })
			}
			d := decision(&q, all.decide(&q, w.now, nil), nil, ModeLocal)
			allowed, rows := o.Decide(w.now, what, oracleCharges(&q))
			if what != rule.Refund {
				sameDecision(t, q.charges, d, allowed, rows)
			}
			if what == rule.Consume || what == rule.Late {
				given.add(d, req)
			}
		}
	})
}

// TestLimits_Script_EqualsTheOracle is the main test of the limits script. Random requests on a real Redis get exactly
// the oracle's answers. There are clock steps in both directions, changes of the rules, and keys that expire at their
// time. Requests that must not write do not write. A key may expire only when its bucket is like an unused one.
func TestLimits_Script_EqualsTheOracle(t *testing.T) {
	client := parallelClient(t)
	now := worldStart
	l := patientLimiter(t, client, settings{redisNow: func() int64 { return now }})
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		tenant := fmt.Sprintf("acme-%d", run)
		w, o := drawWorld(t), oracle.New()
		var given charged
		expiries := expiries{client: client, at: make(map[string]int64), last: make(map[string]string)}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.step(t)
			what, req := w.drawRequest(t, tenant)
			req = given.draw(t, w, what, req)
			q := testenv.Must(t).Get(req.check(what))
			keys := make([]string, len(q.charges))
			for i, c := range q.charges {
				keys[i] = c.key
			}
			expiries.pass(t, o, oracleCharges(&q), w.now)
			before, rewrites := dump(t, client, keys), behind(o, oracleCharges(&q), w.now)
			now, expiries.sent = w.now, time.Now()
			d := testenv.Must(t).Get(perform(l, what, req))
			allowed, rows := o.Decide(w.now, what, oracleCharges(&q))
			if what != rule.Refund {
				sameDecision(t, q.charges, d, allowed, rows)
			}
			if what == rule.Consume || what == rule.Late {
				given.add(d, req)
			}
			if writes := rewrites || what == rule.Refund || what != rule.Peek && allowed; !writes {
				require.Equal(t, before, dump(t, client, keys), "a denied or peeked request changed %q into", before)
			}
			expiries.note(t, o, keys, w.now)
		}
	})
}

// perform runs an operation on req.
func perform(l *Limiter, what rule.Op, req Request) (d Decision, err error) {
	switch what {
	case rule.Consume:
		return l.Consume(context.Background(), req)
	case rule.Late:
		return l.ConsumeLate(context.Background(), req)
	case rule.Peek:
		return l.Peek(context.Background(), req)
	default:
		_, err = l.Refund(context.Background(), req)
		return d, err
	}
}

// behind reports whether one of the buckets must be written even without a charge. If its time is more than 5 s ahead
// of now, the bucket must be moved. If the rule's rate has changed since the bucket was written, the bucket must be
// converted.
func behind(o *oracle.Oracle, charges []oracle.Charge, now int64) bool {
	for _, c := range charges {
		if b := o.Buckets[c.Key]; b != nil && (b.At-now > 5_000_000 || !sameForm(b.Written, c)) {
			return true
		}
	}
	return false
}

// sameForm reports whether two versions of a rule differ at most in their capacity.
func sameForm(a, b oracle.Charge) bool {
	return a.Count == b.Count && a.Period == b.Period && a.Month == b.Month && a.Zone == b.Zone
}

// dump returns the exact content of keys, without their TTLs.
func dump(t *rapid.T, client redis.UniversalClient, keys []string) string {
	all := ""
	for _, key := range keys {
		v, err := client.Dump(context.Background(), key).Result()
		require.False(t, err != nil && !errors.Is(err, redis.Nil), err)
		all += key + "=" + v + "\n"
	}
	return all
}

// expiries makes keys expire by the test's clock instead of Redis's clock.
type expiries struct {
	client redis.UniversalClient
	at     map[string]int64  // us
	last   map[string]string // values
	sent   time.Time         // when the request was sent that wrote the keys
}

// ttl returns the time to live that the request gave a key. On a busy machine seconds may have passed since then.
func (e *expiries) ttl(t *rapid.T, key string) time.Duration {
	ttl := testenv.Must(t).Get(e.client.PTTL(context.Background(), key).Result())
	if ttl > 0 {
		ttl += time.Since(e.sent)
	}
	return ttl
}

// note records when the keys that have just been written expire, and removes their expiries in Redis. It fails the
// test if a key would expire before its bucket is empty, that is, unused.
func (e *expiries) note(t *rapid.T, o *oracle.Oracle, keys []string, now int64) {
	ctx := context.Background()
	for _, key := range keys {
		e.keepBan(t, o, key, now)
		value, before := stored(t, e.client, key, false), e.last[key]
		e.last[key] = value
		ttl := e.ttl(t, key)
		require.False(t, ttl < 0 && value != "" && value != before, "%s was written without an expiry", key)
		if ttl > 0 {
			e.at[key] = now + (ttl - testGrace).Microseconds()
			if b := o.Buckets[key]; b != nil && b.EmptyAt > e.at[key] { // the script adds a second, so now may be late
				t.Fatalf("%s expires %d us before it is empty", key, b.EmptyAt-e.at[key])
			}
			require.NoError(t, e.client.Persist(ctx, key).Err())
		}
	}
}

// keepBan fails the test if the ban of a bucket would expire too early. It removes the expiry of the ban's key.
func (e *expiries) keepBan(t *rapid.T, o *oracle.Oracle, key string, now int64) {
	ban := rule.BanKey(key)
	ttl := e.ttl(t, ban)
	if stored(t, e.client, ban, true) != "" && ttl > 0 && now+(ttl-testGrace).Microseconds() < o.BanEnds(key) {
		t.Fatalf("%s is kept for %s, and ends %d us from now", ban, ttl, o.BanEnds(key)-now)
	}
}

// pass deletes about half of the keys that have expired by the test's clock. It fails the test if such a bucket is
// not empty, unless its rule has changed.
func (e *expiries) pass(t *rapid.T, o *oracle.Oracle, charges []oracle.Charge, now int64) {
	for _, c := range charges {
		due, known := e.at[c.Key]
		if !known || due > now || rapid.Bool().Draw(t, "not yet") {
			continue
		}
		delete(e.at, c.Key)
		delete(e.last, c.Key)
		require.NoError(t, e.client.Del(context.Background(), c.Key).Err())
		b := o.Buckets[c.Key]
		if b == nil {
			continue
		}
		if w := b.Written; sameForm(w, c) {
			if b := o.Advance(c, now); !c.Fits(b, now, c.Capacity) && w.Capacity == c.Capacity {
				t.Fatalf("%s expired with something in it: %+v", c.Key, b)
			}
		}
		delete(o.Buckets, c.Key)
	}
}

func TestVector_EqualsOneCallPerRequest(t *testing.T) {
	client := parallelClient(t)
	script := limitsScript(t, client)
	bench := newWorkbench(false) // one for all batches, as in a lane
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		bench.clear()
		run++
		w := drawWorld(t)
		tenants := []string{fmt.Sprintf("together-%d", run), fmt.Sprintf("together-%d-b", run)}
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			batch := w.drawBatch(t, tenants)
			for _, v := range bench.vectors(batch, w.now) {
				answers := testenv.Must(t).Get(answersOf(v, batch, runOnce(script, v.call(w.now))))
				for n, i := range v.queries {
					one := []query{apart(batch[i])}
					single := vectors(one, false, w.now)[0]
					alone := testenv.Must(t).Get(answersOf(single, one, runOnce(script, single.call(w.now))))
					got, want := answers[n], alone[0]
					require.Equal(t, want, got, "request %d of a vector answers %+v, alone %+v", n, got, want)
				}
				for _, key := range slices.Concat(v.keys, v.withBans(nil)) {
					got, want := stored(t, client, key, true), stored(t, client, apartKey(key), true)
					require.True(t, got == want, "%s is %q after a vector, %q after single calls", key, got, want)
				}
			}
			bench.clear()
			w.now += rapid.Int64Range(-6_000_000, 60_000_000).Draw(t, "us")
		}
	})
}

// drawBatch returns a random batch of a lane. It has requests of the given tenants, some with rules from before a
// change and some from after it.
func (w *world) drawBatch(t *rapid.T, tenants []string) []query {
	var batch []query
	for range rapid.IntRange(1, MaxVector+1).Draw(t, "requests") {
		if rapid.IntRange(0, 30).Draw(t, "reload") == 0 {
			w.changeRule(t)
		}
		if len(batch) > 0 && rapid.Bool().Draw(t, "alike") {
			batch = append(batch, batch[rapid.IntRange(max(0, len(batch)-6), len(batch)-1).Draw(t, "which")])
			continue
		}
		what, req := w.drawRequest(t, rapid.SampledFrom(tenants).Draw(t, "tenant"))
		q := testenv.Must(t).Get(req.check(what))
		if len(q.charges) > 0 {
			batch = append(batch, q)
		}
	}
	return batch
}

func runOnce(s *redisstore.Script, c redisstore.Call) redisstore.Reply {
	return s.Run(context.Background(), c)[0]
}

// apart returns a copy of q on the buckets of another tenant. The requests of that tenant are decided with one call
// each.
func apart(q query) query {
	other := query{op: q.op, tenant: apartKey(q.tenant), charges: slices.Clone(q.charges)}
	for i := range other.charges {
		other.charges[i].key, other.charges[i].tag = apartKey(q.charges[i].key), apartKey(q.charges[i].tag)
	}
	return other
}

func apartKey(key string) string { return strings.Replace(key, "together", "apart", 1) }

// stored returns the value of a key. If keep is true, it also removes the key's expiry, because Redis expires keys by
// its own clock and not by the test's.
func stored(t *rapid.T, client redis.UniversalClient, key string, keep bool) string {
	ctx := context.Background()
	v, err := client.Get(ctx, key).Result()
	require.False(t, err != nil && !errors.Is(err, redis.Nil), err)
	if keep {
		require.NoError(t, client.Persist(ctx, key).Err())
	}
	return v
}
