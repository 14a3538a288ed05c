package catalog

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/lane"
)

const (
	// unheardAge is the largest age of a cached tenant while notifications are not received, and of "no such tenant" at any
	// time.
	unheardAge = time.Second

	// heardAge is the largest age of any cached tenant, in case a notification is lost. A full cache then costs less than
	// 200 reads/s.
	heardAge = 10 * time.Minute

	// awayPause is how long stale tenants are answered at once after PostgreSQL failed to answer.
	awayPause = time.Second

	// loadTimeout bounds a read of tenants, and loadQueue the requests that wait for one: no request may hang while
	// PostgreSQL does. loadBatch is the most tenants of one read, which takes a few milliseconds.
	loadTimeout = time.Second
	loadQueue   = 10_000
	loadBatch   = 500

	// unknownTenants is the number of ids without a tenant in memory. They have a place of their own: a client that asks for many of
	// them must not drive out tenants.
	unknownTenants = 10_000

	// stripes is the number of groups of tenants. A notification during a read affects the tenants of its group only.
	stripes = 256
)

// tenantCache holds the most recently used tenants. It reads missing ones through a lane: requests at the same time become
// one query.
type tenantCache struct {
	store     *Store
	metrics   *metrics
	listening *atomic.Bool
	now       func() time.Time

	entries *lru.Cache[string, *cachedTenant]
	unknown *lru.Cache[string, *cachedTenant]               // ids without a tenant
	loads   atomic.Pointer[lane.Lane[string, loadedTenant]] // nil before start
	config  lane.Config

	trusted atomic.Int64 // unix nanoseconds: tenants read before are stale
	away    atomic.Int64 // unix nanoseconds: until then cached tenants are answered without PostgreSQL

	// changes counts the notifications of each stripe. A tenant that was being read at that moment is not cached.
	seed    maphash.Seed
	changes [stripes]atomic.Uint64
}

// cachedTenant is immutable.
type cachedTenant struct {
	tenant *Tenant // nil: no such tenant
	readAt time.Time
}

type loadedTenant struct {
	tenant *Tenant // nil: no such tenant
	err    error
}

func newTenantCache(store *Store, cfg Config, m *metrics, hearing *atomic.Bool) *tenantCache {
	entries, err := lru.New[string, *cachedTenant](cfg.Tenants)
	if err != nil {
		panic("catalog: " + err.Error()) // only for a size below 1
	}
	unknown, err := lru.New[string, *cachedTenant](unknownTenants)
	if err != nil {
		panic("catalog: " + err.Error())
	}
	return &tenantCache{
		store: store, metrics: m, listening: hearing, now: cfg.Now, entries: entries, unknown: unknown, seed: maphash.MakeSeed(),
		config: lane.Config{Name: "tenants", MaxQueue: loadQueue, MaxBatch: loadBatch, Metrics: cfg.Lanes, Log: cfg.Log, Now: cfg.Now},
	}
}

func (c *tenantCache) start() { c.loads.Store(lane.New(c.config, nil, c.load)) }

func (c *tenantCache) stop(ctx context.Context) error { return c.loads.Load().Stop(ctx) }

// get returns a tenant from the cache, or reads it. It returns ErrNoTenant if there is none.
func (c *tenantCache) get(ctx context.Context, id string) (*Tenant, error) {
	entry, known := c.entries.Get(id)
	if !known {
		entry, _ = c.unknown.Get(id)
	}
	now := c.now()
	if entry != nil && c.fresh(entry, now) {
		c.metrics.hits.Inc()
		return entry.answer(id)
	}
	return c.read(ctx, id, entry, now)
}

// read reads a tenant, in one query with others that are needed at this moment. If PostgreSQL is down, it returns the old
// entry, if there is one.
func (c *tenantCache) read(ctx context.Context, id string, entry *cachedTenant, now time.Time) (*Tenant, error) {
	known := entry != nil
	if !bound.ID(id) {
		return nil, notFound(kindTenant, id)
	}
	if known && entry.tenant != nil && (now.UnixNano() < c.away.Load() || c.store.cfg.Away() != nil) {
		c.metrics.stale.Inc()
		return entry.tenant, nil
	}
	loads := c.loads.Load()
	if loads == nil {
		return nil, &Error{Code: CodeUnavailable, Detail: "the catalogue is not started"}
	}
	c.metrics.misses.Inc()
	loaded, err := loads.Do(ctx, id)
	if err == nil {
		err = loaded.err
	}
	if err == nil {
		return (&cachedTenant{tenant: loaded.tenant}).answer(id)
	}
	if known && entry.tenant != nil && ctx.Err() == nil {
		c.metrics.stale.Inc()
		return entry.tenant, nil
	}
	return nil, loadError(err)
}

// fresh reports whether entry can be answered without PostgreSQL.
func (c *tenantCache) fresh(entry *cachedTenant, now time.Time) bool {
	age := now.Sub(entry.readAt)
	if age < unheardAge {
		return true
	}
	return entry.tenant != nil && age < heardAge && c.listening.Load() && entry.readAt.UnixNano() >= c.trusted.Load()
}

func (e *cachedTenant) answer(id string) (*Tenant, error) {
	if e.tenant == nil {
		return nil, notFound(kindTenant, id)
	}
	return e.tenant, nil
}

// loadError translates an error of the lane.
func loadError(err error) error {
	if errors.Is(err, lane.ErrFull) || errors.Is(err, lane.ErrStopped) {
		return &Error{Code: CodeUnavailable, Detail: unavailableDetail, cause: err}
	}
	return translate("read tenant", err)
}

// load reads the tenants ids for the lane, and caches them.
func (c *tenantCache) load(ctx context.Context, ids []string) []loadedTenant {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	before := make([]uint64, len(ids))
	for i, id := range ids {
		before[i] = c.stripe(id).Load()
	}
	readAt := c.now()
	wanted := slices.Compact(slices.Sorted(slices.Values(ids)))
	var rows []Tenant
	err := c.store.read(ctx, "read tenants", func(ctx context.Context, tx *txn) (err error) {
		rows, err = tx.tenants(ctx, wanted, "", len(wanted))
		return err
	})
	answers := make([]loadedTenant, len(ids))
	if err != nil {
		if errors.Is(err, errUnavailable) {
			c.away.Store(c.now().Add(awayPause).UnixNano())
			c.store.cfg.Suspect()
		}
		for i := range answers {
			answers[i].err = err
		}
		return answers
	}
	found := make(map[string]*Tenant, len(rows))
	for i := range rows {
		found[rows[i].ID] = &rows[i]
	}
	for i, id := range ids {
		answers[i].tenant = found[id]
		c.add(id, &cachedTenant{tenant: found[id], readAt: readAt})
		if c.stripe(id).Load() != before[i] {
			c.remove(id) // after adding, because drop counts before it removes: one of the two notices the other
		}
	}
	return answers
}

// drop removes a changed tenant.
func (c *tenantCache) drop(id string) {
	c.stripe(id).Add(1)
	c.remove(id)
}

func (c *tenantCache) add(id string, entry *cachedTenant) {
	if entry.tenant == nil {
		c.unknown.Add(id, entry)
		return
	}
	c.entries.Add(id, entry)
	c.unknown.Remove(id)
}

func (c *tenantCache) remove(id string) {
	c.entries.Remove(id)
	c.unknown.Remove(id)
}

// invalidateAll makes all cached tenants stale.
func (c *tenantCache) invalidateAll() { c.trusted.Store(c.now().UnixNano()) }

func (c *tenantCache) stripe(id string) *atomic.Uint64 {
	return &c.changes[maphash.String(c.seed, id)%stripes]
}
