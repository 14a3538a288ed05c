package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Defaults of LocalUnitsOptions.
const (
	// defaultMin is small, so that a backend with little use takes almost no units away from other backends.
	defaultMin = 100

	// defaultMax leads to two requests per 10,000 decisions. A larger hold would save nothing measurable.
	defaultMax = 10_000

	// defaultTTL is long enough for a restart or a failover of the service, and returns the units of a crashed backend within a minute.
	defaultTTL = time.Minute

	// defaultCaptureEvery bounds the loss at a crash to the use of a second.
	defaultCaptureEvery = time.Second

	// defaultTimeout is the longest time in which the service refuses a request.
	defaultTimeout = 5 * time.Second

	// defaultLocalCap bounds the time until a LocalUnits with no units left notices that the service is back.
	defaultLocalCap = 2 * time.Second

	// defaultClose bounds a Close whose context has no deadline.
	defaultClose = 10 * time.Second
)

const (
	maxAmount = 1<<53 - 1 // largest amount of the service
	maxTTL    = 24 * time.Hour

	// awayAfter is how long a request for a hold may take until the service counts as away. It is several times
	// longer than the slowest answer of a working service.
	awayAfter = time.Second

	// maxHolds bounds the holds of one process. At a steady rate two holds are in use; the other holds wait for the
	// answers to slow captures.
	maxHolds = 4

	// deniedPause is how long a denial by the service is reused. After this time a top-up is noticed.
	deniedPause = time.Second
)

// The reasons of a LocalDenial.
var (
	// ErrExhausted: the service refused to hold units. LocalDenial has the service's answer.
	ErrExhausted = errors.New("the service holds no more units for this balance")

	// ErrRefilling: too few units are held, and more units have been requested from the service.
	ErrRefilling = errors.New("units are on their way")

	// ErrAway: too few units are held, and the service does not answer.
	ErrAway = errors.New("the service does not answer")

	// ErrClosed: Close was called.
	ErrClosed = errors.New("the local units are closed")
)

// LocalDenial is the error of a Take that was not granted.
type LocalDenial struct {
	Reason     error         // ErrExhausted, ErrRefilling, ErrAway or ErrClosed
	Status     int           // of the service's answer; 0 unless Reason is ErrExhausted
	Code       string        // of the problem, for example quota_exceeded
	Detail     string        // of the problem
	RetryAfter time.Duration // from the service; 0 = none
}

func (d *LocalDenial) Error() string {
	if d.Detail == "" {
		return d.Reason.Error()
	}
	return d.Reason.Error() + ": " + d.Detail
}

// Unwrap returns the reason, for errors.Is.
func (d *LocalDenial) Unwrap() error { return d.Reason }

// LocalUnitsOptions say which balance is spent, and how. Zero values have defaults, except for URL, Tenant and Meter.
type LocalUnitsOptions struct {
	URL     string // of the service, for example https://quotasvc.internal:8080
	Key     string // a key with the scope use; empty: Client adds the header itself
	Tenant  string
	Meter   string
	Subject string // empty: only the tenant's balance

	// Min and Max bound the units of one hold. The size of a hold follows the rate of use: a hold should last for a
	// second. It may be below Min if few units remain. 0 means 100 and 10,000. Max also bounds a Take. One process
	// has at most four holds, usually two.
	Min, Max int64

	// TTL is how long the service keeps a hold: whole seconds up to a day; 0 means a minute. While the service is
	// away, held units can be spent for at most this time. The held units of a crashed process return to the balance
	// after this time.
	TTL time.Duration

	// CaptureEvery bounds how long use stays uncaptured while the service answers; 0 means a second. Uncaptured use
	// is lost at a crash.
	CaptureEvery time.Duration

	// UnbackedMax is the number of units that are granted without a hold while the service is away, after the held
	// units. They are debited when the service is back, as far as the balance covers them. A hold that was requested
	// meanwhile may be created before the debit. 0: no such units are granted.
	UnbackedMax int64

	// Timeout bounds one attempt of a request; 0 means 5 s.
	Timeout time.Duration

	// Client sends the requests; nil means http.DefaultClient.
	Client *http.Client

	// Backoff computes the waits between attempts. Its Cap is 2 s if it is 0.
	Backoff Backoff

	// OnError is called with every failed attempt and every refusal of the service. It must return soon. nil: it is not
	// called.
	OnError func(error)
}

// LocalUnits spends units of one balance in this process. It creates holds in advance, answers Take from memory,
// captures the used units and releases the rest. It is safe for concurrent use and has two goroutines until Close.
type LocalUnits struct {
	options LocalUnitsOptions
	now     func() time.Duration // since the start, by the monotonic clock
	attempt context.Context      // of all requests; ends when Close gives up
	giveUp  context.CancelFunc

	wakeFiller, wakeSettler chan struct{} // capacity 1
	closing                 chan struct{} // closed by Close
	filled, settled         chan struct{} // closed by the goroutines at their end

	mu      sync.Mutex
	closed  bool
	holds   []*localHold  // all holds that may still exist at the service, oldest first
	changed chan struct{} // closed and replaced after every answer that TakeWait waits for

	filling     bool          // a hold has been requested
	asking      *operation    // the request for this hold; nil before the first attempt
	away        bool          // a hold has been requested, and the service does not answer
	denial      *LocalDenial  // the service's last answer about a hold, if it refused
	deniedUntil time.Duration // no hold is requested before this time
	sizing      sizing        // decides how many units to request

	late   int64      // taken units that no hold pays and that must be debited
	debit  *operation // the debit of late units that is running or not answered
	debits int        // number of debits so far, used in their keys
	id     string     // unique; begins the keys of debits
	stats  LocalStats
}

// LocalStats are sums since NewLocalUnits, except for Uncharged and Held, which are current values. All are units,
// except for Requests. After a Close without error, Taken = Captured + Debited + Shortfall.
type LocalStats struct {
	Taken     int64 // granted by Take
	Captured  int64 // charged by captures of holds
	Debited   int64 // charged by debits, because their hold had ended or they were granted without one
	Shortfall int64 // granted, and not covered by the balance at the debit
	Uncharged int64 // granted and not charged yet: lost if the process crashes now
	Held      int64 // held and not taken
	Requests  int64 // sent to the service
}

// NewLocalUnits returns a LocalUnits. The caller must call Close. An error names the option that is wrong. There is
// no request before the first Take.
func NewLocalUnits(o LocalUnitsOptions) (*LocalUnits, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	start := time.Now()
	l := &LocalUnits{
		options: o, now: func() time.Duration { return time.Since(start) }, id: "local-" + NewKey(),
		wakeFiller: make(chan struct{}, 1), wakeSettler: make(chan struct{}, 1), closing: make(chan struct{}),
		filled: make(chan struct{}), settled: make(chan struct{}), changed: make(chan struct{}),
		sizing: sizing{min: o.Min, max: o.Max},
	}
	l.attempt, l.giveUp = context.WithCancel(context.Background())
	go l.fill()
	go l.settle()
	return l, nil
}

// complete sets the defaults and checks the rest.
func (o *LocalUnitsOptions) complete() error {
	setDefault(&o.Min, min(defaultMin, max(o.Max, 0)), defaultMin)
	setDefault(&o.Max, max(defaultMax, o.Min), 0)
	setDefault(&o.TTL, defaultTTL, 0)
	setDefault(&o.CaptureEvery, defaultCaptureEvery, 0)
	setDefault(&o.Timeout, defaultTimeout, 0)
	setDefault(&o.Backoff.Cap, defaultLocalCap, 0)
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	for _, rule := range []struct {
		ok            bool
		field, demand string
	}{
		{o.URL != "", "URL", "is required"},
		{o.Tenant != "", "Tenant", "is required"},
		{o.Meter != "", "Meter", "is required"},
		{o.Max >= 1 && o.Max <= maxAmount, "Max", "must be from 1 to 2^53 - 1"},
		{o.Min >= 1 && o.Min <= o.Max, "Min", "must be from 1 to Max"},
		{o.TTL >= time.Second && o.TTL <= maxTTL && o.TTL%time.Second == 0, "TTL", "must be whole seconds from 1s to 24h"},
		{o.CaptureEvery > 0, "CaptureEvery", "must be above 0"},
		{o.Timeout > 0, "Timeout", "must be above 0"},
		{o.UnbackedMax >= 0 && o.UnbackedMax <= maxAmount, "UnbackedMax", "must be from 0 to 2^53 - 1"},
	} {
		if !rule.ok {
			return fmt.Errorf("LocalUnitsOptions.%s %s", rule.field, rule.demand)
		}
	}
	return nil
}

// setDefault sets a zero value to d, or to other if d is also 0.
func setDefault[T int64 | time.Duration](v *T, d, other T) {
	if *v == 0 {
		*v = d
	}
	if *v == 0 {
		*v = other
	}
}

// Take takes n units, 1 to Max, without a request. If this process holds too few units, it takes none of them and
// returns a LocalDenial.
func (l *LocalUnits) Take(n int64) error {
	if n < 1 || n > l.options.Max {
		return fmt.Errorf("n must be from 1 to %d (Max)", l.options.Max)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take(n)
}

// TakeWait is Take, except that it waits for requested units. It waits until they arrive, the service refuses them,
// or ctx ends. While the service is away, it waits until ctx ends.
func (l *LocalUnits) TakeWait(ctx context.Context, n int64) error {
	if n < 1 || n > l.options.Max {
		return fmt.Errorf("n must be from 1 to %d (Max)", l.options.Max)
	}
	for {
		l.mu.Lock()
		err := l.take(n)
		changed, filling := l.changed, l.filling
		l.mu.Unlock()
		if err == nil || !filling {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// take is Take for a caller that holds the lock.
func (l *LocalUnits) take(n int64) error {
	if l.closed {
		return &LocalDenial{Reason: ErrClosed}
	}
	now := l.now()
	var free, lasting int64
	for _, h := range l.holds {
		units := h.free(now)
		free += units
		if now < h.old {
			lasting += units
		}
	}
	if free < n {
		return l.short(n, n-free, now)
	}
	l.stats.Taken += n
	if lasting-n < l.sizing.low() {
		l.askForUnits(now)
	}
	for _, h := range l.holds {
		part := min(n, h.free(now))
		if part == 0 {
			continue
		}
		if h.take(part, now) {
			wake(l.wakeSettler)
		}
		if n -= part; n == 0 {
			break
		}
	}
	return nil
}

// short answers a Take of n units if missing units are not held.
func (l *LocalUnits) short(n, missing int64, now time.Duration) error {
	l.sizing.miss(missing)
	l.askForUnits(now)
	switch {
	case l.denial != nil:
		denial := *l.denial
		return &denial
	case !l.away:
		return &LocalDenial{Reason: ErrRefilling}
	case n > l.options.UnbackedMax-l.late:
		return &LocalDenial{Reason: ErrAway}
	}
	l.late += n
	l.stats.Taken += n
	wake(l.wakeSettler)
	return nil
}

// askForUnits wakes the filler, unless the filler is already working or the service has just refused.
func (l *LocalUnits) askForUnits(now time.Duration) {
	if !l.filling && now >= l.deniedUntil {
		l.filling = true
		wake(l.wakeFiller)
	}
}

// Stats returns the sums so far.
func (l *LocalUnits) Stats() LocalStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, now := l.stats, l.now()
	s.Uncharged = l.late
	for _, h := range l.holds {
		s.Uncharged += h.taken - h.captured
		s.Held += h.free(now)
	}
	return s
}

// Close refuses further takes, captures the used units, returns the rest to the balance, and ends the goroutines. It
// gives up when ctx ends, or after 10 s if ctx has no deadline. Then it returns an error, and the service returns the
// units when the holds expire. A second Close waits for the first Close.
func (l *LocalUnits) Close(ctx context.Context) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultClose)
		defer cancel()
	}
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
		l.retryNow()
		l.announce()
	}
	l.mu.Unlock()
	select {
	case <-l.settled:
	case <-ctx.Done():
		l.giveUp()
		<-l.settled
	}
	l.giveUp()
	if s, holds := l.Stats(), l.unsettled(); s.Uncharged > 0 || holds > 0 {
		return fmt.Errorf("close local units in time: %d used units were not charged, and %d holds are left to expire", s.Uncharged, holds)
	}
	return nil
}

// unsettled returns the number of holds that the service may still keep.
func (l *LocalUnits) unsettled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.holds)
}

// announce wakes all TakeWaits. The caller holds the lock.
func (l *LocalUnits) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // its goroutine is awake already
	}
}
