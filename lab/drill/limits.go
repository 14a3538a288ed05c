package drill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	// limitTokens is what each limit of the chargers admits. No token comes back during a run.
	limitTokens = 40

	// bucketsPerLimit is the number of buckets of each limit in use at a time.
	bucketsPerLimit = 2

	// bucketTime is the shortest time for which a bucket is used; the longest is twice as long. It is longer than most
	// outages and the times after them until all instances have found Redis again.
	bucketTime = 12 * time.Second

	// clientsPerCharger is the number of clients beside each charger.
	clientsPerCharger = 4

	leaseKind = "concurrency"
)

// limitKinds are the kinds of limits that are charged, with the rest of their definition. A leaky bucket is missing: it
// would let its requests wait for days.
var limitKinds = []struct{ kind, terms string }{
	{"fixed_window", fmt.Sprintf(`"rate":"%d/month"`, limitTokens)},
	{"sliding_window", fmt.Sprintf(`"rate":"%d/31d"`, limitTokens)},
	{"sliding_log", fmt.Sprintf(`"rate":"%d/31d"`, limitTokens)},
	{"token_bucket", fmt.Sprintf(`"rate":"%d/31d"`, limitTokens)},
	{leaseKind, fmt.Sprintf(`"burst":%d`, limitTokens)},
}

// limits are the buckets that the chargers use.
type limits struct {
	instances int

	mu       sync.Mutex
	inUse    []*bucket
	all      []*bucket
	requests int
}

// bucket is a bucket of a limit, with the answers about it.
type bucket struct {
	kind, tenant, subject string
	until                 time.Time // it is used until then
	answers               []decision
}

// decision is a final answer about a bucket.
type decision struct {
	by          int // the number of the instance
	sent, ended time.Time
	granted     bool
	local       bool // the instance decided without Redis
}

func newLimits(cfg *Config) *limits { return &limits{instances: cfg.Instances} }

// newChargers returns the clients that use limits.
func (l *limits) newChargers(cfg *Config, f *fleet, m *memory) []*client {
	few := *cfg
	few.Clients = max(1, cfg.Clients/clientsPerCharger)
	chargers := newClients(&few, f, m)
	for i, c := range chargers {
		c.name = fmt.Sprintf("charger%d", i)
		c.rng = rand.New(rand.NewPCG(cfg.Seed, uint64(clientsMax+i)+2))
	}
	return chargers
}

// pick returns one of the buckets in use. It replaces those that have been used for long enough.
func (l *limits) pick(c *client) *bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	n, now := c.rng.IntN(bucketsPerLimit*len(limitKinds)), time.Now()
	for len(l.inUse) <= n {
		l.inUse = append(l.inUse, &bucket{})
	}
	if now.After(l.inUse[n].until) {
		l.inUse[n] = &bucket{
			kind: limitKinds[n%len(limitKinds)].kind, tenant: c.tenant(), subject: fmt.Sprintf("b%d", len(l.all)),
			until: now.Add(bucketTime + time.Duration(c.rng.Int64N(int64(bucketTime)))),
		}
		l.all = append(l.all, l.inUse[n])
	}
	return l.inUse[n]
}

// use charges a bucket, or takes a lease that lasts longer than the bucket is used. It records the answer.
func (l *limits) use(ctx context.Context, c *client) {
	b := l.pick(c)
	c.count++
	path, what := "/v1/limits/charge", fmt.Sprintf(`"rules":[%q]`, b.kind)
	if b.kind == leaseKind {
		path, what = "/v1/leases", fmt.Sprintf(`"rule":%q,"ttl_seconds":3600`, b.kind)
	}
	body := fmt.Sprintf(`{"tenant":%q,"subject":%q,%s}`, b.tenant, b.subject, what)
	in := c.fleet.slots[c.rng.IntN(len(c.fleet.slots))].newest.Load()
	sent := time.Now()
	a := c.do(ctx, in.api, http.MethodPost, path, fmt.Sprintf("%s-%d", c.name, c.count), body, nil)
	switch outcome := outcomeOf(a); outcome {
	case Done, Refused:
		l.mu.Lock()
		defer l.mu.Unlock()
		b.answers = append(b.answers, decision{in.number, sent, time.Now(), outcome == Done, a.local})
	case Open:
	default:
		c.memory.change(func() { c.memory.wrong[fmt.Sprintf("answer of %s: %d %s", path, a.status, a.code)]++ })
	}
}
