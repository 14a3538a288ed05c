package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/kit/lane"
	"github.com/quotasvc/quotasvc/internal/store/listener"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// defaultReloadEvery is the period of reloads without a notification. If a person changes the tables by hand, an
	// instance sees the change after at most this time.
	defaultReloadEvery = 30 * time.Second

	// defaultHeartbeat is the period of checks of the listener's connection. A connection can fail without an error.
	// Then notifications are lost until the next check fails.
	defaultHeartbeat = time.Second

	// catchUpTimeout is the longest time that a request waits for the read of an announced change. A read takes some
	// milliseconds.
	catchUpTimeout = time.Second

	// defaultTenants is the largest number of tenants in memory. A tenant takes about 100 bytes, so all take 10 MB.
	defaultTenants = 100_000
)

// Config configures a Catalog. The zero value is valid.
type Config struct {
	Tenants     int           // largest number of tenants in memory; the least recently used is dropped; 0 is 100,000
	ReloadEvery time.Duration // period of reloads without a notification; 0 is 30 s
	Heartbeat   time.Duration // period of checks of the listener's connection; 0 is 1 s
	LoadTimeout time.Duration // bounds the time of one read of tenants; requests wait for the read; 0 is 1 s

	// OnReset, if not nil, is called with each bucket that was reset, on any instance. It must not block.
	OnReset func(bucket string)

	// OnKeys, if not nil, is called when API keys were changed, or may have been changed, on any instance. It must
	// not block.
	OnKeys func()

	// OnHeard, if not nil, is called at least once in Heartbeat while announcements are received, after OnKeys for the
	// announcements that arrived before. It must not block.
	OnHeard func()

	Log     *slog.Logger          // nil: no log lines
	Metrics prometheus.Registerer // nil: no metrics
	Lanes   *lane.Metrics         // nil: no metrics of the lane that reads tenants
	Now     func() time.Time      // nil is time.Now; measures ages only
}

// Catalog is a Store with a copy in memory. The copy receives the changes that any instance makes.
type Catalog struct {
	*Store

	cfg      Config
	log      *slog.Logger
	metrics  *metrics
	blocks   atomic.Pointer[block.Index]
	tenants  *tenantCache
	listener *listener.Listener

	snapshots, blockLists *reloadLoop

	publishing sync.Mutex // held while a snapshot is read, compiled and published
	compile    func(s, before *Snapshot) any
	readAt     atomic.Int64 // unix nanoseconds: when the newest read of a snapshot began; 0: never

	mu      sync.Mutex // guards the life cycle
	started bool
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a catalogue over store. A store must have only one catalogue. The catalogue does not use PostgreSQL
// before Start.
func New(store *Store, cfg Config) *Catalog {
	if cfg.Tenants <= 0 {
		cfg.Tenants = defaultTenants
	}
	if cfg.ReloadEvery <= 0 {
		cfg.ReloadEvery = defaultReloadEvery
	}
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = defaultHeartbeat
	}
	if cfg.LoadTimeout <= 0 {
		cfg.LoadTimeout = defaultLoadTimeout
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.OnHeard == nil {
		cfg.OnHeard = func() {}
	}
	c := &Catalog{Store: store, cfg: cfg, log: cfg.Log}
	c.blocks.Store(&block.Index{})
	c.metrics = newMetrics(cfg.Metrics, c)
	loop := reloadConfig{What: "meters, plans and limits", Read: c.readSnapshotNow, Every: cfg.ReloadEvery, Now: cfg.Now, Ended: c.metrics.reloaded, Log: cfg.Log}
	c.snapshots = newReloadLoop(loop)
	loop.What, loop.Read = "blocks", c.readBlocksNow
	c.blockLists = newReloadLoop(loop)
	c.listener = store.db.Listener(listener.Config{
		Heartbeat: cfg.Heartbeat, Log: cfg.Log,
		Notified: func(payload string) { c.onNotify([]string{payload}) }, Heard: cfg.OnHeard, Lost: c.metrics.lost.Inc, Back: c.missed,
	})
	c.tenants = newTenantCache(store, cfg, c.metrics, c.listener)
	store.db.OnCommit(c.onNotify)
	return c
}

// Start connects the listener, reads all meters, plans, limits and blocks, and follows changes until Stop. It fails
// if PostgreSQL does not answer or its schema is out of date. A Catalog can be started only once.
func (c *Catalog) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return errors.New("catalog: started twice")
	}
	conn, err := c.listener.Connect(ctx)
	if err != nil {
		return fmt.Errorf("start the catalogue: %w", pgstore.Translate("listen", err))
	}
	// The reads come after LISTEN. If a change commits after the reads, its notification is received.
	if err := errors.Join(c.readSnapshotNow(ctx), c.readBlocksNow(ctx)); err != nil {
		listener.Close(conn)
		return fmt.Errorf("start the catalogue: %w", err)
	}
	c.started = true
	c.listener.Begin()
	c.tenants.start()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	c.running.Go(func() { c.listener.Run(running, conn) })
	c.running.Go(func() { c.snapshots.Run(running) })
	c.running.Go(func() { c.blockLists.Run(running) })
	return nil
}

// missed starts a reload of the whole catalogue, because notifications were lost. Tenants that were cached before
// count as stale.
func (c *Catalog) missed() {
	c.tenants.invalidateAll()
	c.triggerAll()
}

// Stop ends the goroutines that follow changes. The copies in memory stay readable. Stop may be called more than
// once, and without Start.
func (c *Catalog) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started {
		return nil
	}
	c.cancel()
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	err := c.tenants.stop(ctx)
	select {
	case <-ended: // this happens soon: every wait of the goroutines ends when their context ends
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop the catalogue: %w", ctx.Err())
	}
}

// Snapshot returns the newest snapshot, which is empty before Start. A reload makes a new snapshot if a meter, plan
// or limit was changed. A snapshot itself never changes.
func (c *Catalog) Snapshot() *Snapshot { return c.latest.Load() }

// Compile sets the function that makes Snapshot.Compiled, and runs it for the newest snapshot. The function is also
// called for each later snapshot, before the snapshot is published, by the goroutine that reads the snapshot. The
// argument `before` is the previous snapshot.
func (c *Catalog) Compile(compile func(s, before *Snapshot) any) {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	c.compile = compile
	s := *c.latest.Load()
	s.Compiled = compile(&s, &Snapshot{})
	c.latest.Store(&s)
}

// Blocks returns the index of the newest blocks. Before Start the index is empty.
func (c *Catalog) Blocks() *block.Index { return c.blocks.Load() }

// Tenant returns the facts that requests need about the tenant with this id, from memory if possible. It fails with
// errcode.TenantNotFound if the tenant does not exist. It fails with errcode.Unavailable if the tenant is not in
// memory and PostgreSQL does not answer within a second or before ctx ends.
//
// A tenant in memory may lack the changes of the last milliseconds. While notifications are not received, the tenant
// in memory is at most a second old. While PostgreSQL is down, it may be of any age.
func (c *Catalog) Tenant(ctx context.Context, id string) (TenantFacts, error) {
	return c.tenants.get(ctx, id)
}

// ReadAhead reads the tenants in ids that are not in memory. It reads many tenants with one query. Tenant then finds
// them in memory. If ReadAhead could not read a tenant, Tenant reads it again.
func (c *Catalog) ReadAhead(ctx context.Context, ids []string) { c.tenants.readAhead(ctx, ids) }

// CatchUp makes the snapshot current. It reads only if this process has changed meters, plans or limits since the
// newest read, or has received a notification of such a change. It reports whether it has waited for a successful
// read. If so, the caller should look again for an object that it did not find. CatchUp reads at most once for each
// change, and takes at most a second.
func (c *Catalog) CatchUp(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	waited, err := c.snapshots.CatchUp(ctx)
	return waited && err == nil
}

// isListening reports whether notifications are received.
func (c *Catalog) isListening() bool { return c.listener.Listening() }

// onNotify handles notifications of changes.
func (c *Catalog) onNotify(changes []string) {
	for _, change := range changes {
		kind, id, _ := strings.Cut(change, ":")
		switch kind {
		case kindTenant:
			c.tenants.drop(id)
		case kindMeter, kindPlan, kindLimit:
			c.snapshots.Trigger()
		case kindBlock:
			c.blockLists.Trigger()
		case pgstore.KindKey:
			c.keysChanged()
		case kindReset:
			if c.cfg.OnReset != nil {
				c.cfg.OnReset(id)
			}
		default: // the whole catalogue was announced, or a kind that only a newer version knows
			c.tenants.invalidateAll()
			c.triggerAll()
		}
	}
}

// triggerAll starts a reload of the snapshot and of the blocks, and calls OnKeys.
func (c *Catalog) triggerAll() {
	c.snapshots.Trigger()
	c.blockLists.Trigger()
	c.keysChanged()
}

func (c *Catalog) keysChanged() {
	if c.cfg.OnKeys != nil {
		c.cfg.OnKeys()
	}
}

// readSnapshotNow reads the catalogue, and publishes a new snapshot if a meter, plan or limit was changed. Otherwise
// it compiles and publishes nothing.
func (c *Catalog) readSnapshotNow(ctx context.Context) error {
	c.publishing.Lock()
	defer c.publishing.Unlock()
	before, now := c.latest.Load(), c.cfg.Now()
	snapshot, err := c.readSnapshot(ctx, before, now)
	if err != nil {
		return err
	}
	c.readAt.Store(now.UnixNano())
	if snapshot == before {
		return nil
	}
	if c.compile != nil {
		snapshot.Compiled = c.compile(snapshot, before)
	}
	c.latest.Store(snapshot)
	return nil
}

func (c *Catalog) readBlocksNow(ctx context.Context) error {
	blocks, err := c.readBlocks(ctx, c.cfg.Now())
	if err == nil {
		c.blocks.Store(blocks)
	}
	return err
}
