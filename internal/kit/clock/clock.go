package clock

import (
	"cmp"
	"sync"
	"time"
)

// SkewMaxDefault is the largest skew of clocks that agree. NTP keeps hosts within some milliseconds. After a pause, a
// virtual machine is some seconds behind until NTP corrects its clock. Half a minute does not matter for periods.
const SkewMaxDefault = 30 * time.Second

// Config configures a Clock. Zero values mean the defaults.
type Config struct {
	// SkewMax is the largest skew of clocks that agree; 0 is SkewMaxDefault. With a very large SkewMax, PostgreSQL's
	// clock always decides.
	SkewMax time.Duration
	Wall    func() time.Time // the instance's clock; nil: the system's
	// Ahead is the time that is added to every decision; it may be negative. It is 0 without a test clock (package
	// testclock).
	Ahead time.Duration
	// Changed is called with the skew when the clocks begin to agree or to disagree. It must not block. It may be
	// nil.
	Changed func(agree bool, skew time.Duration)
}

// Clock decides the time from the newest reading of PostgreSQL's clock.
type Clock struct {
	cfg Config

	mu       sync.Mutex
	ahead    time.Duration
	decision time.Time // the decision of the newest reading, in UTC
	read     time.Time // instant of that reading; monotonic, so setting the instance's clock does not change it
	skew     time.Duration
	disagree bool
}

// New returns a clock. Until the first reading it uses the instance's time as if it were PostgreSQL's.
func New(cfg Config) *Clock {
	cfg.SkewMax = cmp.Or(cfg.SkewMax, SkewMaxDefault)
	return &Clock{cfg: cfg, ahead: cfg.Ahead}
}

// Begin returns the time of the instance's clock, which Agree needs. Call it before PostgreSQL is queried. The result
// has no monotonic reading, because a monotonic reading would hide that the clock was set.
func (c *Clock) Begin() time.Time {
	if c.cfg.Wall == nil {
		return time.Now().Round(0)
	}
	return c.cfg.Wall().Round(0)
}

// Agree returns the decision in UTC. began is the result of Begin before the query. database is PostgreSQL's time,
// which the query returned. Call Agree as soon as the answer has arrived.
func (c *Clock) Agree(began, database time.Time) time.Time {
	ended := c.Begin()
	skew := Skew(database, began, ended)
	agree := Within(skew, c.cfg.SkewMax)
	decision := database.UTC()
	if !agree && ended.Before(database) {
		decision = ended.UTC()
	}
	c.mu.Lock()
	decision = decision.Add(c.ahead)
	changed := c.disagree == agree
	c.decision, c.read, c.skew, c.disagree = decision, time.Now(), skew, !agree
	c.mu.Unlock()
	if changed && c.cfg.Changed != nil {
		c.cfg.Changed(agree, skew)
	}
	return decision
}

// Skew returns how far PostgreSQL's clock was ahead of the instance's clock. began and ended are the instance's time
// before the query and after the answer. If PostgreSQL's time is between began and ended, Skew returns 0. Otherwise
// it returns the difference to the nearer of the two times.
func Skew(database, began, ended time.Time) time.Duration {
	if ended.Before(began) { // the instance's clock was set back meanwhile
		began, ended = ended, began
	}
	switch {
	case database.After(ended):
		return database.Sub(ended)
	case database.Before(began):
		return database.Sub(began)
	}
	return 0
}

// Within reports whether clocks with this skew agree.
func Within(skew, most time.Duration) bool { return skew <= most && skew >= -most }

// Now returns the time without a query to PostgreSQL, in UTC: the newest decision plus the time that has passed since
// then. Before the first reading it uses the instance's clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() {
		return c.Begin().UTC().Add(c.ahead)
	}
	return c.decision.Add(time.Since(c.read))
}

// Advance adds a duration to all later decisions. The duration may be negative only before the first reading.
func (c *Clock) Advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
	c.decision = c.decision.Add(by)
}

// Ahead returns the time that is added to every decision.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// State returns the skew of the newest reading, and whether the clocks agreed.
func (c *Clock) State() (skew time.Duration, agree bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew, !c.disagree
}
