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
	// unheardAge is how old a cached tenant may be while announcements cannot be heard, and how old "there is no such tenant"
	// may be at any time.
	unheardAge = time.Second

	// heardAge is how old a cached tenant may be at all: a net under announcements, at less than 200 reads/s for a full cache.
	heardAge = 10 * time.Minute

	// awayPause is how long stale tenants are answered at once after PostgreSQL has failed to answer.
	awayPause = time.Second

	// loadTimeout bounds a read of tenants, and loadQueue how many may wait for one; the bounds keep a request from hanging
	// while PostgreSQL does. loadBatch tenants are read at once, which takes a few milliseconds.
	loadTimeout = time.Second
	loadQueue   = 10_000
	loadBatch   = 500

	// stripes is how many groups of tenants are told apart when one changes while others are being read.
	stripes = 256
)

// tenantCache keeps the tenants used last. It reads those it does not have through a lane: whatever is asked for at the same
// time is one query.
type tenantCache struct {
	store     *Store
	metrics   *metrics
	listening *atomic.Bool
	now       func() time.Time

	entries *lru.Cache[string, *cachedTenant]
	loads   atomic.Pointer[lane.Lane[string, loadedTenant]] // nil before start
	config  lane.Config

	trusted atomic.Int64 // unix nanoseconds: what was read before is not fresh
	away    atomic.Int64 // unix nanoseconds: until then PostgreSQL is not asked about tenants that are known

	// changes counts what was heard of each stripe: what was being read at that moment is not kept.
	seed    maphash.Seed
	changes [stripes]atomic.Uint64
}

// cachedTenant is immutable.
type cachedTenant struct {
	tenant *Tenant // nil: there is none
	readAt time.Time
}

type loadedTenant struct {
	tenant *Tenant // nil: there is none
	err    error
}

func newTenantCache(store *Store, cfg Config, m *metrics, hearing *atomic.Bool) *tenantCache {
	entries, err := lru.New[string, *cachedTenant](cfg.Tenants)
	if err != nil {
		panic("catalog: " + err.Error()) // only for a size below 1
	}
	return &tenantCache{
		store: store, metrics: m, listening: hearing, now: cfg.Now, entries: entries, seed: maphash.MakeSeed(),
		config: lane.Config{Name: "tenants", MaxQueue: loadQueue, MaxBatch: loadBatch, Metrics: cfg.Lanes, Log: cfg.Log, Now: cfg.Now},
	}
}

func (c *tenantCache) start() { c.loads.Store(lane.New(c.config, nil, c.load)) }

func (c *tenantCache) stop(ctx context.Context) error { return c.loads.Load().Stop(ctx) }

// get returns a tenant from the cache, or reads it. ErrNoTenant: there is none.
func (c *tenantCache) get(ctx context.Context, id string) (*Tenant, error) {
	entry, _ := c.entries.Get(id)
	now := c.now()
	if entry != nil && c.fresh(entry, now) {
		c.metrics.hits.Inc()
		return entry.answer(id)
	}
	return c.read(ctx, id, entry, now)
}

// read reads a tenant, together with others that are read at this moment. While PostgreSQL is away, it answers with the old entry, if
// there is one.
func (c *tenantCache) read(ctx context.Context, id string, entry *cachedTenant, now time.Time) (*Tenant, error) {
	known := entry != nil
	if !bound.ID(id) {
		return nil, notFound(kindTenant, id)
	}
	if known && entry.tenant != nil && now.UnixNano() < c.away.Load() {
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

// fresh reports whether entry can be answered without asking PostgreSQL.
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

// loadError turns the lane's errors into this package's.
func loadError(err error) error {
	if errors.Is(err, lane.ErrFull) || errors.Is(err, lane.ErrStopped) {
		return &Error{Code: CodeUnavailable, Detail: unavailableDetail, cause: err}
	}
	return translate("read tenant", err)
}

// load is the lane's work: it reads the tenants ids and keeps what it found.
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
		c.entries.Add(id, &cachedTenant{tenant: found[id], readAt: readAt})
		if c.stripe(id).Load() != before[i] {
			c.entries.Remove(id) // after adding, as drop counts before removing: one of the two sees the other
		}
	}
	return answers
}

// drop forgets a tenant that has changed.
func (c *tenantCache) drop(id string) {
	c.stripe(id).Add(1)
	c.entries.Remove(id)
}

// distrust makes everything stale that was read until now.
func (c *tenantCache) invalidateAll() { c.trusted.Store(c.now().UnixNano()) }

func (c *tenantCache) stripe(id string) *atomic.Uint64 {
	return &c.changes[maphash.String(c.seed, id)%stripes]
}
