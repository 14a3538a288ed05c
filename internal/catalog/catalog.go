package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/lane"
)

const (
	// defaultReloadEvery is the safety net under announcements: what a hand changed in the tables is seen this late.
	defaultReloadEvery = 30 * time.Second

	// defaultHeartbeat is how often the listener's connection must show that it lives. A connection can die without a sign;
	// until that is noticed, changes go unheard.
	defaultHeartbeat = time.Second

	// defaultTenants is how many tenants are kept: about 50 MB with typical metadata.
	defaultTenants = 100_000
)

// Config says how a Catalog behaves. The zero value is valid.
type Config struct {
	Tenants     int           // tenants kept in memory, the least recently used go first; 0 is 100,000
	ReloadEvery time.Duration // between reloads nobody announced; 0 is 30 s
	Heartbeat   time.Duration // between signs of life of the listener's connection; 0 is 1 s

	// OnReset, if not nil, hears of buckets that were reset, here or elsewhere. It must not block.
	OnReset func(bucket string)

	Log     *slog.Logger          // nil discards
	Metrics prometheus.Registerer // nil: not registered
	Lanes   *lane.Metrics         // nil: the lane that reads tenants is not measured
	Now     func() time.Time      // nil is time.Now; for ages only
}

// Catalog is a Store and a copy of it in memory that follows every change, whichever instance makes it.
type Catalog struct {
	*Store

	cfg       Config
	log       *slog.Logger
	metrics   *metrics
	snapshot  atomic.Pointer[Snapshot]
	blocks    atomic.Pointer[Blocks]
	tenants   *tenantCache
	listening atomic.Bool // the listener is connected

	snapshots, blockLists *reloader

	mu      sync.Mutex // of the life cycle
	started bool
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New makes a catalogue over store, which must not be given to another one. It touches PostgreSQL only when it is started.
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
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Catalog{Store: store, cfg: cfg, log: cfg.Log}
	c.snapshot.Store(&Snapshot{})
	c.blocks.Store(&Blocks{})
	c.snapshots = newReloader("meters, plans and limits", c.readSnapshotNow)
	c.blockLists = newReloader("blocks", c.readBlocksNow)
	c.metrics = newMetrics(cfg.Metrics, c)
	c.tenants = newTenantCache(store, cfg, c.metrics, &c.listening)
	store.committed = c.onNotify
	return c
}

// Start begins to listen, reads everything once and then follows changes until Stop. Its error says what is missing: it needs
// PostgreSQL with an up-to-date schema. A Catalog starts once.
func (c *Catalog) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return errors.New("catalog: started twice")
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return fmt.Errorf("start the catalogue: %w", err)
	}
	// After LISTEN, so that no change falls between the two.
	if err := errors.Join(c.readSnapshotNow(ctx), c.readBlocksNow(ctx)); err != nil {
		closeQuietly(conn)
		return fmt.Errorf("start the catalogue: %w", err)
	}
	c.started = true
	c.listening.Store(true)
	c.tenants.start()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	c.running.Go(func() { c.listen(running, conn) })
	c.running.Go(func() { c.reload(running, c.snapshots) })
	c.running.Go(func() { c.reload(running, c.blockLists) })
	return nil
}

// Stop ends following changes. What is in memory can be read on. It may be called more than once, and without Start.
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
	case <-ended: // soon: every wait of theirs ends with their context
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop the catalogue: %w", ctx.Err())
	}
}

// Snapshot returns the newest snapshot; it is empty before Start. It changes identity, and only then content, with a reload.
func (c *Catalog) Snapshot() *Snapshot { return c.snapshot.Load() }

// Blocks returns the newest blocks; there are none before Start.
func (c *Catalog) Blocks() *Blocks { return c.blocks.Load() }

// Tenant returns the tenant id, from memory if possible: read it only. It fails with CodeTenantNotFound, and with CodeUnavailable
// if it is not in memory and PostgreSQL does not answer before ctx or a second ends.
//
// A tenant in memory is as old as the last announcement can be: milliseconds. While announcements cannot be heard it is at
// most a second old, or, while PostgreSQL is away, as old as it happens to be.
func (c *Catalog) Tenant(ctx context.Context, id string) (*Tenant, error) {
	return c.tenants.get(ctx, id)
}

// Listening reports whether announcements of changes can be heard at the moment.
func (c *Catalog) isListening() bool { return c.listening.Load() }

// hear takes in announcements.
func (c *Catalog) onNotify(changes []string) {
	for _, change := range changes {
		kind, id, _ := strings.Cut(change, ":")
		switch kind {
		case kindTenant:
			c.tenants.drop(id)
		case kindMeter, kindPlan, kindLimit:
			c.snapshots.trigger()
		case kindBlock:
			c.blockLists.trigger()
		case kindReset:
			if c.cfg.OnReset != nil {
				c.cfg.OnReset(id)
			}
		default: // everything, or a word of a newer version
			c.tenants.invalidateAll()
			c.triggerAll()
		}
	}
}

// wantReload has everything read anew.
func (c *Catalog) triggerAll() {
	c.snapshots.trigger()
	c.blockLists.trigger()
}

func (c *Catalog) readSnapshotNow(ctx context.Context) error {
	snapshot, err := c.readSnapshot(ctx, c.cfg.Now())
	if err == nil {
		c.snapshot.Store(snapshot)
	}
	return err
}

func (c *Catalog) readBlocksNow(ctx context.Context) error {
	blocks, err := c.readBlocks(ctx, c.cfg.Now())
	if err == nil {
		c.blocks.Store(blocks)
	}
	return err
}

// closeQuietly closes a connection that nobody can do anything about any more.
func closeQuietly(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the server notices by itself too
}
