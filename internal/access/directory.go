package access

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/metric"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

const (
	// defaultRereadEvery is the time after which the keys are read again without an announcement. It is the same as
	// for the catalogue.
	defaultRereadEvery = 30 * time.Second

	// rereadPause is the shortest pause between two reads of the keys. Without it, unknown secrets of the right form
	// could cause reads without end.
	rereadPause = 50 * time.Millisecond

	// retryPauseMax is the longest pause after a failed read. It is far less than the second in which a key must end.
	retryPauseMax = 250 * time.Millisecond

	// defaultUnknownWait is the default of Config.UnknownWait. It is far longer than a read of the keys, which takes
	// some milliseconds. It is also the Retry-After of the reason Undecided.
	defaultUnknownWait = time.Second

	// useEvery is the time between two writes of the latest uses of keys.
	useEvery = time.Minute
)

// Reason says why a caller was refused.
type Reason int

// The reasons for a refusal.
const (
	Missing   Reason = iota // no key was sent
	Unknown                 // the key does not exist, or has expired or was revoked
	TooMany                 // too many wrong secrets, links and cookies from this address
	Undecided               // the secret is not in memory, and PostgreSQL does not answer
)

// label returns the reason as a label value for metrics.
func (r Reason) label() string {
	return [...]string{"missing", "unknown", "too_many", "undecided"}[r]
}

// Refusal is the error for a caller without a valid key.
type Refusal struct {
	Reason     Reason
	RetryAfter time.Duration // only for TooMany and Undecided
}

// Error returns the reason.
func (r *Refusal) Error() string { return "not authenticated: " + r.Reason.label() }

// Seconds returns RetryAfter for the header Retry-After: in whole seconds, rounded up, and at least 1.
func (r *Refusal) Seconds() string {
	return strconv.FormatInt(int64(max(1, (r.RetryAfter+time.Second-1)/time.Second)), 10)
}

// Config configures a Directory.
type Config struct {
	Log         *slog.Logger          // required
	Metrics     prometheus.Registerer // nil: no metrics
	RereadEvery time.Duration         // time between two reads of the keys without an announcement; 0 is 30 s
	Strangers   *Strangers            // shares its limit of wrong secrets with pages; nil: a limit of its own
	UnknownWait time.Duration         // longest wait of a request with an unknown secret of the right form; 0 is 1 s
}

// Directory has all valid keys in memory. It authenticates callers.
type Directory struct {
	store     *Store // nil: there is only the bootstrap key
	log       *slog.Logger
	every     time.Duration // Config.RereadEvery
	wait      time.Duration // Config.UnknownWait
	strangers *Strangers
	failures  *prometheus.CounterVec

	stored    atomic.Pointer[map[hash]*known]
	bootstrap atomic.Pointer[known]

	mu      sync.Mutex
	reading chan struct{}            // closed when the next read of the keys has ended; nil if no caller waits for it
	kick    chan struct{}            // capacity 1: a read of the keys is due
	uses    map[string]*atomic.Int64 // by key id: the second of the latest use; kept when the keys are read again
	noted   map[string]int64         // by key id: the latest use that is stored in PostgreSQL
	ended   map[string][]ending      // by key id: ends since the latest read began, which it may not have seen
	failed  bool                     // the latest read of the keys failed
	changes int                      // counts calls of Changed
	seen    int                      // the value of changes when the newest successful read began
	right   time.Time                // until then the keys in memory were known to be right
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// NewDirectory returns a directory. Until Start it has only the bootstrap key; if store is nil, it never has other
// keys. It returns an error if bound.AdminKey refuses the bootstrap key.
func NewDirectory(store *Store, bootstrap string, cfg Config) (*Directory, error) {
	d := &Directory{
		store: store, log: cfg.Log, strangers: cfg.Strangers,
		every: cmp.Or(cfg.RereadEvery, defaultRereadEvery), wait: cmp.Or(cfg.UnknownWait, defaultUnknownWait),
		kick: make(chan struct{}, 1), uses: map[string]*atomic.Int64{}, noted: map[string]int64{},
		failures: metric.CounterVec(cfg.Metrics, "quotasvc_auth_failures_total",
			"Requests without a valid key, by reason: missing, unknown, too_many (invented keys, links or cookies "+
				"from one address) and undecided (PostgreSQL did not answer).",
			"reason"),
	}
	if d.strangers == nil {
		d.strangers = NewStrangers(nil)
	}
	d.strangers.refuse = d.refuse
	for r := Missing; r <= Undecided; r++ {
		d.failures.WithLabelValues(r.label())
	}
	d.stored.Store(&map[hash]*known{})
	if store != nil {
		metric.GaugeFunc(cfg.Metrics, "quotasvc_keys_age_seconds",
			"Time since the keys in memory were known to be right. A key that was revoked since then may still work.",
			func() float64 { return d.age().Seconds() })
	}
	return d, d.SetBootstrap(bootstrap)
}

// SetBootstrap replaces the bootstrap key. The new key applies from the next request on.
func (d *Directory) SetBootstrap(secret string) error {
	if !bound.AdminKey(secret) {
		return errors.New("the admin key " + bound.MustBeAdminKey)
	}
	k := Key{ID: auditlog.Bootstrap, Name: auditlog.Bootstrap, Scopes: Admin}
	d.bootstrap.Store(&known{Key: k, hash: hashOf(secret)})
	return nil
}

// Start reads the keys and follows their changes until Stop. It fails if PostgreSQL does not answer.
func (d *Directory) Start(ctx context.Context) error {
	if err := d.read(ctx); err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	d.running.Go(func() { d.follow(running) })
	return nil
}

// Stop ends the reads of the keys, and stores the latest uses. It may be called without Start.
func (d *Directory) Stop(ctx context.Context) error {
	if d.cancel == nil {
		return nil
	}
	d.cancel()
	d.running.Wait() // soon, because all waits end with their context
	d.cancel = nil
	if err := d.storeUses(ctx); err != nil {
		d.log.Warn("the latest uses of keys could not be stored", "error", err)
	}
	return nil
}

// Changed makes the directory read the keys again, because a key was changed on this or another instance, or because
// an announcement may have been lost.
func (d *Directory) Changed() {
	d.mu.Lock()
	d.changes++
	d.mu.Unlock()
	d.kickOff()
}

// kickOff makes a read of the keys due.
func (d *Directory) kickOff() {
	select {
	case d.kick <- struct{}{}:
	default: // a read is due already
	}
}

// Heard records that announcements are received. So the keys in memory are right, unless a change was announced that
// is not read yet.
func (d *Directory) Heard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == d.changes {
		d.right = time.Now()
	}
}

// age returns how long it is since the keys in memory were known to be right.
func (d *Directory) age() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.right.IsZero() {
		return 0 // not started
	}
	return time.Since(d.right)
}

// Revoke ends a key for ever, and on this instance at once: see Store.Revoke.
func (d *Directory) Revoke(ctx context.Context, id string, may func(*Key) error) error {
	if err := d.store.Revoke(ctx, id, may); err != nil {
		return err
	}
	d.end(id, ending{at: time.Now()})
	return nil
}

// Rotate gives a key a new secret. On this instance, the earlier secrets end at once if there is no overlap: see
// Store.Rotate.
func (d *Directory) Rotate(
	ctx context.Context, id string, overlap time.Duration, may func(*Key) error,
) (k Key, secret string, err error) {
	if k, secret, err = d.store.Rotate(ctx, id, overlap, may); err != nil {
		return k, secret, err
	}
	d.end(id, ending{at: time.Now().Add(overlap), except: hashOf(secret)})
	return k, secret, nil
}

// Store returns the store of the keys. It returns nil if there is only the bootstrap key.
func (d *Directory) Store() *Store { return d.store }

// Knows reports whether an Authorization header has the secret of a valid key. It looks only in memory and does not
// count failures.
func (d *Directory) Knows(authorization string, now time.Time) bool {
	sum := hashOf(bearer(authorization))
	return d.find(&sum, now) != nil
}

// bearer returns the secret in an Authorization header. It returns "" if the header has no secret.
func bearer(authorization string) string {
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(secret, " ")
}

// Authenticate returns the key whose secret is in an Authorization header. If there is no secret, it returns the key
// that As put into ctx. It fails with a *Refusal. The function `from` returns the caller's address, and is called
// only if the secret is not in memory. The returned key is shared and must not be changed.
func (d *Directory) Authenticate(
	ctx context.Context, authorization string, from func() netip.Addr, now time.Time,
) (*Key, error) {
	secret := bearer(authorization)
	if secret == "" {
		if k := made(ctx); k != nil {
			return k, nil
		}
		return nil, d.refuse(Missing, 0)
	}
	sum := hashOf(secret)
	if k := d.find(&sum, now); k != nil {
		return &k.Key, nil
	}
	return d.search(ctx, secret, &sum, from(), now)
}

// search continues Authenticate for a secret that is not in memory.
func (d *Directory) search(
	ctx context.Context, secret string, sum *hash, address netip.Addr, now time.Time,
) (*Key, error) {
	if wait := d.strangers.guesses.wait(address, now); wait > 0 {
		return nil, d.refuse(TooMany, wait)
	}
	if d.store != nil && isSecret(secret) {
		if err := d.await(ctx); err != nil {
			return nil, d.refuse(Undecided, defaultUnknownWait)
		}
		if k := d.find(sum, now); k != nil {
			return &k.Key, nil
		}
	}
	if _, wait := d.strangers.guesses.take(address, now); wait > 0 {
		return nil, d.refuse(TooMany, wait)
	}
	return nil, d.refuse(Unknown, 0)
}

// refuse counts a refusal and returns it.
func (d *Directory) refuse(why Reason, wait time.Duration) error {
	d.failures.WithLabelValues(why.label()).Inc()
	return &Refusal{Reason: why, RetryAfter: wait}
}

// find returns the secret with this hash, and the key of the secret. It returns nil if the secret is not valid at
// now.
func (d *Directory) find(sum *hash, now time.Time) *known {
	k := (*d.stored.Load())[*sum]
	if k == nil {
		k = d.bootstrap.Load()
	}
	if subtle.ConstantTimeCompare(k.hash[:], sum[:]) != 1 || !k.worksAt(now) {
		return nil
	}
	k.note(now)
	return k
}

// await waits for a read of the keys that begins after the call. All waiting callers share one read.
func (d *Directory) await(ctx context.Context) error {
	d.mu.Lock()
	if d.reading == nil {
		d.reading = make(chan struct{})
	}
	done := d.reading
	d.mu.Unlock()
	d.kickOff()
	timer := time.NewTimer(d.wait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		return context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed {
		return errors.New("the keys could not be read")
	}
	return nil
}

// follow reads the keys when a read is due, and stores when keys were used.
func (d *Directory) follow(ctx context.Context) {
	reread, uses := time.NewTicker(d.every), time.NewTicker(useEvery)
	defer reread.Stop()
	defer uses.Stop()
	for retry := backoff.New(rereadPause, retryPauseMax); ; {
		select {
		case <-ctx.Done():
			return
		case <-uses.C:
			if err := d.storeUses(ctx); err != nil && ctx.Err() == nil {
				d.log.Debug("the uses of keys could not be stored; tried again in a minute", "error", err)
			}
			continue
		case <-d.kick:
		case <-reread.C:
		}
		if err := d.read(ctx); err != nil { // read logs the error
			d.kickOff()
			if !retry.Wait(ctx) {
				return
			}
			continue
		}
		retry.Reset()
		if !backoff.Sleep(ctx, rereadPause) {
			return
		}
	}
}

// UsedHere sets LastUsedAt of k to the latest use on this instance, if that is later than the stored use.
func (d *Directory) UsedHere(k *Key) {
	d.mu.Lock()
	used := d.uses[k.ID]
	d.mu.Unlock()
	if used == nil {
		return
	}
	if at := time.Unix(used.Load(), 0).UTC(); used.Load() > 0 && at.After(k.LastUsedAt) {
		k.LastUsedAt = at
	}
}

// storeUses stores the uses of keys that are later than the stored uses.
func (d *Directory) storeUses(ctx context.Context) error {
	var (
		ids   []string
		at    []time.Time
		noted = map[string]int64{}
	)
	d.mu.Lock()
	for id, used := range d.uses {
		second := used.Load()
		if noted[id] = d.noted[id]; second > noted[id] {
			ids, at, noted[id] = append(ids, id), append(at, time.Unix(second, 0)), second
		}
	}
	d.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	if err := d.store.noteUse(ctx, ids, at); err != nil {
		return err
	}
	d.mu.Lock()
	d.noted = noted
	d.mu.Unlock()
	return nil
}
