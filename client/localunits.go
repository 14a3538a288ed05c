package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Defaults of the fields of LocalUnitsOptions.
const (
	// defaultMin is the default of Min. It is small, so that a backend with little use takes almost no units away
	// from other backends.
	defaultMin = 100

	// defaultMax is the default of Max. Such a hold needs two requests per 10,000 takes. A larger hold would save
	// nothing measurable.
	defaultMax = 10_000

	// defaultTTL is long enough for a restart or a failover of the service. If a backend crashes, its units return to
	// the balance within a minute.
	defaultTTL = time.Minute

	// defaultCaptureEvery is the default of CaptureEvery. If a backend crashes, the use of at most about a second is
	// lost.
	defaultCaptureEvery = time.Second

	// defaultTimeout is the longest time that the service takes to refuse a request.
	defaultTimeout = 5 * time.Second

	// defaultLocalCap is the default of Backoff.Cap. It bounds the time until a LocalUnits without units notices that
	// the service is back.
	defaultLocalCap = 2 * time.Second

	// defaultClose is the maximum time of a Close whose context has no deadline.
	defaultClose = 10 * time.Second
)

const (
	maxAmount = 1<<53 - 1 // the largest amount that the service accepts
	maxTTL    = 24 * time.Hour

	// awayAfter is the time after which the service counts as away if it has not answered a request for a hold. The
	// slowest answers of a working service take only a fraction of this time.
	awayAfter = time.Second

	// maxHolds is the maximum number of holds of one LocalUnits. At a steady rate it uses two holds. The other two
	// are for slow captures, whose holds still exist.
	maxHolds = 4

	// deniedPause is how long a LocalUnits answers with the last denial of the service, without a request. After this
	// time it notices a top-up.
	deniedPause = time.Second
)

// The errors that LocalDenial.Reason may have.
var (
	// ErrExhausted: the service refused to hold units. The LocalDenial has the service's answer.
	ErrExhausted = errors.New("the service holds no more units for this balance")

	// ErrRefilling: this process holds too few units, and has requested more from the service.
	ErrRefilling = errors.New("units are on their way")

	// ErrAway: this process holds too few units, and the service does not answer.
	ErrAway = errors.New("the service does not answer")

	// ErrClosed: Close was called.
	ErrClosed = errors.New("the local units are closed")
)

// LocalDenial is the error of a Take that got no units.
type LocalDenial struct {
	Reason     error         // ErrExhausted, ErrRefilling, ErrAway or ErrClosed
	Status     int           // status of the service's answer; 0 unless Reason is ErrExhausted
	Code       string        // code of the service's answer, for example quota_exceeded
	Detail     string        // detail of the service's answer
	RetryAfter time.Duration // demanded by the service; 0: no wait demanded
}

func (d *LocalDenial) Error() string {
	if d.Detail == "" {
		return d.Reason.Error()
	}
	return d.Reason.Error() + ": " + d.Detail
}

// Unwrap returns the reason, for errors.Is.
func (d *LocalDenial) Unwrap() error { return d.Reason }

// LocalUnitsOptions say from which balance a LocalUnits grants units, and how. Every field except URL, Tenant and
// Meter has a default for its zero value.
type LocalUnitsOptions struct {
	URL     string // URL of the service, for example https://quotasvc.internal:8080
	Key     string // a key with the scope use; empty: Client adds the Authorization header
	Tenant  string
	Meter   string
	Subject string // empty: no subject, only the tenant's balance

	// Min and Max bound the units of one hold. 0 means 100 and 10,000. The size of a hold depends on the rate of use:
	// a hold should last for a second. It may be smaller than Min if few units remain. Max is also the maximum of one
	// Take. One process has at most four holds, and usually two.
	Min, Max int64

	// TTL is how long the service keeps a hold: whole seconds, at most a day. 0 means a minute. While the service is
	// away, held units can be granted for at most this time. If a process crashes, its held units return to the
	// balance after this time.
	TTL time.Duration

	// CaptureEvery is the longest time for which granted units stay uncaptured while the service answers. 0 means a
	// second. If the process crashes, uncaptured units are never charged.
	CaptureEvery time.Duration

	// UnbackedMax is the number of units that may be granted without a hold while the service is away, after the held
	// units are used up. When the service is back, they are debited as far as the balance covers them. A hold that
	// was requested meanwhile may get the last units of the balance before this debit. 0 means that no units are
	// granted without a hold.
	UnbackedMax int64

	// Timeout bounds one attempt of a request; 0 means 5 s.
	Timeout time.Duration

	// Client sends the requests. nil means http.DefaultClient.
	Client *http.Client

	// Backoff computes the waits between attempts. If its Cap is 0, it is 2 s.
	Backoff Backoff

	// OnError is called with every failed attempt and every refusal of the service. It must return soon, because the
	// next attempt waits for it. nil: no function is called.
	OnError func(error)
}

// LocalUnits grants units of one balance from the memory of this process. It creates holds in advance, and Take
// grants held units. It captures the used units and returns the rest. It is safe for concurrent use, and has two
// goroutines until Close.
type LocalUnits struct {
	options LocalUnitsOptions
	now     func() time.Duration // time since the start, by the monotonic clock
	attempt context.Context      // the context of all requests; it ends when Close gives up
	giveUp  context.CancelFunc

	wakeFiller, wakeSettler chan struct{} // capacity 1
	closing                 chan struct{} // closed by Close
	filled, settled         chan struct{} // closed by the goroutines when they end

	mu      sync.Mutex
	closed  bool
	holds   []*localHold  // all holds that may still exist at the service, oldest first
	changed chan struct{} // closed and replaced after every answer that TakeWait waits for

	filling     bool          // a hold is needed, and the filler has not got it yet
	asking      *operation    // the request for a hold that is not answered; nil before its first attempt
	away        bool          // a hold is needed, and the service does not answer
	denial      *LocalDenial  // the service's last answer about a hold, if it was a denial
	deniedUntil time.Duration // until then, no hold is requested
	sizing      sizing        // decides how many units the next hold has

	late   int64      // late units, which must be debited
	debit  *operation // the debit of late units that is not answered yet; nil: none
	debits int        // number of debits so far; a part of their keys
	id     string     // a unique text with which the keys of debits begin
	stats  LocalStats
}

// LocalStats has sums since NewLocalUnits, except for Uncharged and Held, which are present values. All fields except
// Requests are numbers of units. After a Close without an error, Taken = Captured + Debited + Shortfall.
type LocalStats struct {
	Taken     int64 // granted by Take
	Captured  int64 // charged by captures of holds
	Debited   int64 // charged by debits, because their hold had ended or they had no hold
	Shortfall int64 // granted, but not covered by the balance when they were debited
	Uncharged int64 // granted and not charged yet; if the process crashes now, they are never charged
	Held      int64 // held and not granted yet
	Requests  int64 // number of requests to the service
}

// NewLocalUnits returns a LocalUnits. The caller must call Close. If an option is wrong, the error names it. The
// first Take causes the first request.
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

// complete sets the defaults of the options and checks the options.
func (o *LocalUnitsOptions) complete() error {
	o.Min = cmp.Or(o.Min, min(defaultMin, max(o.Max, 0)), defaultMin)
	o.Max = cmp.Or(o.Max, max(defaultMax, o.Min))
	o.TTL = cmp.Or(o.TTL, defaultTTL)
	o.CaptureEvery = cmp.Or(o.CaptureEvery, defaultCaptureEvery)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Backoff.Cap = cmp.Or(o.Backoff.Cap, defaultLocalCap)
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

// Take takes n units, 1 to Max, without a request. If this process holds too few units, Take takes no units and
// returns a *LocalDenial.
func (l *LocalUnits) Take(n int64) error {
	if n < 1 || n > l.options.Max {
		return fmt.Errorf("n must be from 1 to %d (Max)", l.options.Max)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.take(n)
}

// TakeWait does the same as Take, except that it waits if units have been requested. It waits until the units arrive,
// the service denies them, or ctx ends. While the service is away, it waits until ctx ends.
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

// take does the work of Take. The caller holds the lock.
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

// short answers a Take of n units if the process holds too few. The argument `missing` is the number of units that it
// lacks. While the service is away, short may grant the n units without a hold (UnbackedMax). Otherwise it returns a
// *LocalDenial.
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

// askForUnits wakes the filler, unless the filler is already working or the service has denied units within
// deniedPause.
func (l *LocalUnits) askForUnits(now time.Duration) {
	if !l.filling && now >= l.deniedUntil {
		l.filling = true
		wake(l.wakeFiller)
	}
}

// Stats returns the statistics since NewLocalUnits.
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

// Close denies all further takes, captures the used units, returns the rest to the balance, and ends the goroutines.
// It gives up when ctx ends, or after 10 s if ctx has no deadline. Then it returns an error, and the service returns
// the remaining units when the holds expire. A second Close waits for the first Close.
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

// unsettled returns the number of holds that may still exist at the service.
func (l *LocalUnits) unsettled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.holds)
}

// announce wakes all calls of TakeWait. The caller holds the lock.
func (l *LocalUnits) announce() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // the goroutine has already been woken
	}
}
