package catalog

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/quotasvc/quotasvc/internal/catalog/feature"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/kit/recent"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// unheardAge is the largest age of a cached tenant while notifications are not received. The cached answer "no such
	// tenant" is never older than unheardAge.
	unheardAge = time.Second

	// heardAge is the largest age of any cached tenant, in case a notification is lost. It makes a full cache read
	// fewer than 200 tenants per second.
	heardAge = 10 * time.Minute

	// awayPause is the pause of reads after PostgreSQL failed to answer. During the pause the cache returns stale
	// tenants.
	awayPause = time.Second

	// loadQueue is the largest number of requests that wait for a read of tenants. defaultLoadTimeout bounds the time
	// of one read, so that no request hangs while PostgreSQL hangs. loadBatch is the largest number of tenants of one
	// read, which takes a few milliseconds.
	defaultLoadTimeout = time.Second
	loadQueue          = 10_000
	loadBatch          = 500

	// aheadMax is the largest number of tenants that one request reads ahead at a time, so that it cannot fill
	// loadQueue.
	aheadMax = 64

	// unknownTenants is the largest number of cached ids that have no tenant. These ids are in a separate map, so
	// that a client that sends many such ids does not evict tenants.
	unknownTenants = 10_000

	// stripes is the number of groups of tenants. If a change of a tenant is announced during a read, the read tenants
	// of the same group are not cached. The others are cached.
	stripes = 256
)

// tenantCache holds the most recently used tenants. It reads missing tenants through a lane, which combines
// concurrent requests into one query.
type tenantCache struct {
	store    *Store
	metrics  *metrics
	listener interface{ Listening() bool }
	now      func() time.Time

	mu      sync.Mutex
	entries *recent.Map[string, cachedTenant]
	unknown map[string]time.Duration // ids without a tenant, with the time of their read as a duration after began

	reads  atomic.Uint32
	loads  atomic.Pointer[lane.Lane[string, loadedTenant]] // nil before start
	config lane.Config
	limit  time.Duration // longest time of one read

	began   time.Time
	trusted atomic.Int64 // a duration after began: data that was read until then is stale; -1: no data is stale
	away    atomic.Int64 // unix nanoseconds: until then cached tenants are returned without a read

	// changes counts the notifications of each stripe. If a notification arrives while a tenant of its stripe is
	// being read, that tenant is not cached.
	seed    maphash.Seed
	changes [stripes]atomic.Uint64
}

// cachedTenant is a tenant in memory, without its id and without fields that requests do not need.
type cachedTenant struct {
	sold             unique.Handle[soldPlan] // most tenants share these values
	zone             unique.Handle[string]
	created, updated int64         // unix µs
	readAt           time.Duration // a duration after began
	read             uint32        // number of the read that returned the tenant

	suspended, ofRules, ofSubjects bool
	features                       feature.Set // the tenant's own features; nil: none, which is usual
	later                          *laterFacts // what alters at known instants; nil: nothing, which is usual
}

// soldPlan is a version of a plan that a tenant has. newest is the time in unix µs at which the newest known version of
// its plans was made.
type soldPlan struct {
	PlanVersion

	newest int64
}

// laterFacts are what a pending change alters, and the versions of the plan that the tenant has and will have. See the
// fields of TenantFacts.
type laterFacts struct {
	next     *nextFacts
	versions []versionFrom
}

// loadedTenant is the result of a read from PostgreSQL or of a lookup in memory.
type loadedTenant struct {
	tenant TenantFacts
	known  bool // false: the tenant does not exist, or it is not in memory
	err    error
}

func newTenantCache(store *Store, cfg Config, m *metrics, hearing interface{ Listening() bool }) *tenantCache {
	c := &tenantCache{
		store: store, metrics: m, listener: hearing, now: cfg.Now, began: cfg.Now(), seed: maphash.MakeSeed(), limit: cfg.LoadTimeout,
		entries: recent.New[string, cachedTenant](cfg.Tenants), unknown: make(map[string]time.Duration),
		config: lane.Config{Name: "tenants", MaxQueue: loadQueue, MaxBatch: loadBatch, Metrics: cfg.Lanes, Log: cfg.Log, Now: cfg.Now},
	}
	c.trusted.Store(-1)
	return c
}

func (c *tenantCache) start() { c.loads.Store(lane.New(c.config, nil, c.load)) }

func (c *tenantCache) stop(ctx context.Context) error { return c.loads.Load().Stop(ctx) }

// get returns a tenant from the cache, or reads it. It fails with errcode.TenantNotFound if the tenant does not
// exist.
func (c *tenantCache) get(ctx context.Context, id string) (TenantFacts, error) {
	now := c.now()
	entry, fresh := c.cached(id, now)
	if fresh {
		c.metrics.hits.Inc()
		return entry.answer(id)
	}
	return c.read(ctx, id, &entry, now)
}

// cached returns the entry of the tenant in memory, and whether the entry can be used without PostgreSQL.
func (c *tenantCache) cached(id string, now time.Time) (entry loadedTenant, fresh bool) {
	c.mu.Lock()
	e, known := c.entries.Get(id)
	readAt, unknown := e.readAt, false
	if !known {
		readAt, unknown = c.unknown[id]
	}
	c.mu.Unlock()
	if known {
		entry = loadedTenant{tenant: e.facts(id).at(c.store.db.Now), known: true}
	}
	return entry, (known || unknown) && c.fresh(known, readAt, now) && !c.outdated(&entry.tenant)
}

// outdated reports whether the tenant's plan has got a newer version since the tenant was read. Whether that version is
// in force for the tenant follows from the tenant's terms, which must be read.
func (c *tenantCache) outdated(t *TenantFacts) bool {
	p := c.store.latest.Load().Plans[t.Plan]
	return p != nil && p.CreatedAt.After(t.newest)
}

// readAhead reads the tenants in ids that get would have to read. It reads many tenants with one query. It stops at
// the first error. A later call of get reads the tenant again and returns the error.
func (c *tenantCache) readAhead(ctx context.Context, ids []string) {
	var missing []string
	now := c.now()
	for _, id := range ids {
		c.mu.Lock()
		entry, known := c.entries.Peek(id)
		c.mu.Unlock()
		if !known || !c.fresh(true, entry.readAt, now) {
			missing = append(missing, id)
		}
	}
	var next atomic.Int64
	var failed atomic.Bool
	var readers sync.WaitGroup
	for range min(len(missing), aheadMax) {
		readers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(missing) && !failed.Load(); n = int(next.Add(1)) - 1 {
				if _, err := c.get(ctx, missing[n]); err != nil && errcode.Of(err) != errcode.TenantNotFound {
					failed.Store(true)
				}
			}
		})
	}
	readers.Wait()
}

// read reads a tenant, in one query with other tenants that concurrent requests need. If PostgreSQL does not answer
// and the cache has an old entry, it returns that entry.
func (c *tenantCache) read(ctx context.Context, id string, entry *loadedTenant, now time.Time) (TenantFacts, error) {
	if !bound.Name(id) {
		return TenantFacts{}, notFound(kindTenant, id)
	}
	if entry.known && (now.UnixNano() < c.away.Load() || c.store.db.Away() != nil) {
		c.metrics.stale.Inc()
		return entry.tenant, nil
	}
	loads := c.loads.Load()
	if loads == nil {
		return TenantFacts{}, &errcode.Error{Code: errcode.Unavailable, Detail: "the catalogue is not started"}
	}
	c.metrics.misses.Inc()
	loaded, err := loads.Do(ctx, id)
	if err == nil {
		err = loaded.err
	}
	if err == nil {
		return loaded.answer(id)
	}
	if entry.known && ctx.Err() == nil {
		c.metrics.stale.Inc()
		return entry.tenant, nil
	}
	return TenantFacts{}, loadError(err)
}

// fresh reports whether data that was read at readAt can be used without PostgreSQL. known is true if the data is a
// tenant, and false if it is the answer that the tenant does not exist.
func (c *tenantCache) fresh(known bool, readAt time.Duration, now time.Time) bool {
	age := now.Sub(c.began) - readAt
	switch {
	case int64(readAt) <= c.trusted.Load(): // after that read the data may have been changed, also by this process
		return false
	case age < unheardAge:
		return true
	}
	return known && age < heardAge && c.listener.Listening()
}

func (l *loadedTenant) answer(id string) (TenantFacts, error) {
	if !l.known {
		return TenantFacts{}, notFound(kindTenant, id)
	}
	return l.tenant, nil
}

// facts returns the stored facts, of which those of a pending change may be due: see TenantFacts.at.
func (e *cachedTenant) facts(id string) TenantFacts {
	sold := e.sold.Value()
	f := TenantFacts{
		ID: id, Plan: sold.Plan, PlanVersion: sold.Version, newest: time.UnixMicro(sold.newest), Timezone: e.zone.Value(), Suspended: e.suspended, RuleOverrides: e.ofRules, SubjectOverrides: e.ofSubjects,
		CreatedAt: time.UnixMicro(e.created).UTC(), UpdatedAt: time.UnixMicro(e.updated).UTC(), Read: e.read, Features: e.features,
	}
	if e.later != nil {
		f.next, f.versions = e.later.next, e.later.versions
	}
	return f
}

// loadError translates an error of the lane into an *errcode.Error.
func loadError(err error) error {
	if errors.Is(err, lane.ErrFull) || errors.Is(err, lane.ErrStopped) {
		return pgstore.DidNotAnswer(err)
	}
	return pgstore.Translate("read tenant", err)
}

// load reads the tenants in ids from PostgreSQL, and caches them. The lane calls it.
func (c *tenantCache) load(ctx context.Context, ids []string) []loadedTenant {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	before := make([]uint64, len(ids))
	for i, id := range ids {
		before[i] = c.stripe(id).Load()
	}
	readAt := c.now().Sub(c.began)
	wanted := slices.Compact(slices.Sorted(slices.Values(ids)))
	found, err := c.store.tenantFacts(ctx, wanted)
	answers := make([]loadedTenant, len(ids))
	if err != nil {
		if errcode.Of(err) == errcode.Unavailable {
			c.away.Store(c.now().Add(awayPause).UnixNano())
			c.store.db.Suspect()
		}
		for i := range answers {
			answers[i].err = err
		}
		return answers
	}
	number := c.reads.Add(1)
	for i, id := range ids {
		a := &answers[i]
		if a.tenant, a.known = found[id]; a.known {
			a.tenant.Read = number
			c.add(&a.tenant, readAt)
			a.tenant = a.tenant.at(c.store.db.Now)
		} else {
			c.addUnknown(id, readAt)
		}
		if c.stripe(id).Load() != before[i] {
			c.remove(id) // this check is after add: a drop that counts later also removes the entry later
		}
	}
	return answers
}

// drop removes a changed tenant from the cache.
func (c *tenantCache) drop(id string) {
	c.stripe(id).Add(1)
	c.remove(id)
}

// add caches a tenant that was read.
func (c *tenantCache) add(t *TenantFacts, readAt time.Duration) {
	var later *laterFacts
	if t.next != nil || t.versions != nil {
		later = &laterFacts{t.next, t.versions}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Put(t.ID, cachedTenant{
		sold: unique.Make(soldPlan{PlanVersion{t.Plan, t.PlanVersion}, t.newest.UnixMicro()}), zone: unique.Make(t.Timezone), created: t.CreatedAt.UnixMicro(), updated: t.UpdatedAt.UnixMicro(),
		readAt: readAt, read: t.Read, suspended: t.Suspended, ofRules: t.RuleOverrides, ofSubjects: t.SubjectOverrides, features: t.Features, later: later,
	})
	delete(c.unknown, t.ID)
}

func (c *tenantCache) addUnknown(id string, readAt time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.unknown {
		if len(c.unknown) < unknownTenants {
			break
		}
		delete(c.unknown, other) // any id
	}
	c.unknown[strings.Clone(id)] = readAt // a copy, because the string may be part of a larger request
}

func (c *tenantCache) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Remove(id)
	delete(c.unknown, id)
}

// invalidateAll makes all cached entries stale.
func (c *tenantCache) invalidateAll() { c.trusted.Store(int64(c.now().Sub(c.began))) }

func (c *tenantCache) stripe(id string) *atomic.Uint64 {
	return &c.changes[maphash.String(c.seed, id)%stripes]
}
