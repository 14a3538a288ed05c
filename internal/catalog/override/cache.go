package override

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/kit/recent"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// defaultSets is the largest number of sets in memory. They take about 40 MB if each has one override.
	defaultSets = 100_000

	// loadQueue is the largest number of requests that wait for a read. defaultLoadTimeout bounds the time of one
	// read. loadBatch is the largest number of sets of one read.
	defaultLoadTimeout = time.Second
	loadQueue          = 10_000
	loadBatch          = 500

	// awayPause is the pause of reads after PostgreSQL failed to answer.
	awayPause = time.Second
)

// Config configures a Cache. The zero value is valid.
type Config struct {
	Sets        int              // largest number of sets in memory; the least recently used is dropped; 0 is 100,000
	LoadTimeout time.Duration    // bounds the time of one read; requests wait for it; 0 is 1 s
	Lanes       *lane.Metrics    // nil: no metrics of the lane that reads
	Now         func() time.Time // nil is time.Now; measures pauses only
}

// Cache is a Store with the most recently used sets in memory.
type Cache struct {
	*Store

	sets  *recent.Cache[key, *set]
	lane  *lane.Lane[key, *set]
	now   func() time.Time
	limit time.Duration // longest time of one read
	until atomic.Int64  // unix nanoseconds: no reads before this time, because PostgreSQL did not answer
}

// key identifies a set. An empty subject means the set of the tenant.
type key struct{ tenant, subject string }

// set contains the overrides of a tenant or of a subject. It is immutable.
type set struct {
	of     uint32 // number of the read of the tenant to which the set belongs: see TenantFacts.Read
	byRule map[string]*InForce
}

// NewCache returns a cache of the overrides in store. It reads nothing before Start.
func NewCache(store *Store, cfg Config) *Cache {
	if cfg.Sets <= 0 {
		cfg.Sets = defaultSets
	}
	if cfg.LoadTimeout <= 0 {
		cfg.LoadTimeout = defaultLoadTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Cache{Store: store, sets: recent.NewCache[key, *set](cfg.Sets, nil), now: cfg.Now, limit: cfg.LoadTimeout}
	c.lane = lane.New(lane.Config{Name: "overrides", MaxQueue: loadQueue, MaxBatch: loadBatch, Metrics: cfg.Lanes, Now: cfg.Now}, nil, c.load)
	return c
}

// Stop ends the reads. Sets in memory stay in use.
func (c *Cache) Stop(ctx context.Context) error { return c.lane.Stop(ctx) }

// Sets contains the overrides that apply to a request: the set of its subject and the set of its tenant.
type Sets struct{ subject, tenant map[string]*InForce }

// Of returns the overrides of a tenant and of one of its subjects. If subject is empty, it returns only the overrides
// of the tenant. It reads sets that are not in memory, in one query with sets that concurrent requests need. The
// result lacks overrides that cannot be read.
func (c *Cache) Of(ctx context.Context, t *catalog.TenantFacts, subject string) Sets {
	var s Sets
	if t.RuleOverrides {
		s.tenant = c.get(ctx, t, "")
	}
	if t.SubjectOverrides && subject != "" {
		s.subject = c.get(ctx, t, subject)
	}
	return s
}

// Rule returns the override of a rule that is in force at the instant `now`. It returns nil if there is none. bySubject
// says whether the rule has a bucket for each subject.
func (s Sets) Rule(rule string, bySubject bool, now time.Time) *InForce {
	if o := s.subject[rule]; bySubject && o != nil && o.holds(now) {
		return o
	}
	if o := s.tenant[rule]; o != nil && o.holds(now) {
		return o
	}
	return nil
}

func (o *InForce) holds(now time.Time) bool { return o.ExpiresAt.IsZero() || o.ExpiresAt.After(now) }

func (c *Cache) get(ctx context.Context, t *catalog.TenantFacts, subject string) map[string]*InForce {
	k := key{t.ID, subject}
	known, _ := c.sets.Get(k)
	if known == nil || known.of != t.Read {
		if read := c.read(ctx, k); read != nil {
			// The tenant was read before the set. So the set is at least as new as the read t.Read. A later change of
			// the overrides causes a new read of the tenant.
			known = &set{of: t.Read, byRule: read.byRule}
			c.sets.Put(k, known)
		}
	}
	if known == nil {
		return nil
	}
	return known.byRule
}

// read returns a set from PostgreSQL. It returns nil if the set cannot be read now.
func (c *Cache) read(ctx context.Context, k key) *set {
	if c.now().UnixNano() < c.until.Load() {
		return nil
	}
	read, err := c.lane.Do(ctx, k)
	if err != nil {
		return nil
	}
	return read
}

// load reads the sets of keys for the lane. It returns nil for each key if PostgreSQL does not answer.
func (c *Cache) load(ctx context.Context, keys []key) []*set {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	answers, tenants, subjects := make([]*set, len(keys)), make([]string, 0, len(keys)), make([]string, 0, len(keys))
	found := make(map[key]*set, len(keys))
	for _, k := range keys {
		if found[k] == nil {
			found[k] = &set{}
			tenants, subjects = append(tenants, k.tenant), append(subjects, k.subject)
		}
	}
	var rows []Override
	err := c.catalog.DB().In(pgstore.Memory).View(ctx, "read overrides", func(ctx context.Context, tx pgx.Tx) (err error) {
		rows, err = c.collect(ctx, tx, "SelectOverridesOf", tenants, subjects)
		return err
	})
	if err != nil {
		if errcode.Of(err) == errcode.Unavailable { // PostgreSQL did not answer
			c.until.Store(c.now().Add(awayPause).UnixNano())
		}
		return answers
	}
	for i := range rows {
		s := found[key{rows[i].Tenant, rows[i].Subject}]
		if s.byRule == nil {
			s.byRule = map[string]*InForce{}
		}
		s.byRule[rows[i].Rule] = &InForce{Override: rows[i]}
	}
	for i, k := range keys {
		answers[i] = found[k]
	}
	return answers
}
