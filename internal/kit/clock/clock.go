package clock

import (
	"sync"
	"time"
)

// SkewMaxDefault is the bound for clocks that agree. NTP keeps hosts within some milliseconds. After a pause a
// virtual machine is some seconds behind until NTP sets its clock. Half a minute does not matter for periods.
const SkewMaxDefault = 30 * time.Second

// Config configures a Clock. Zero values mean the defaults.
type Config struct {
	// SkewMax is the greatest difference between clocks that agree, SkewMaxDefault if it is 0. With a very large
	// value PostgreSQL's clock always decides.
	SkewMax time.Duration
	Wall    func() time.Time // the instance's clock; nil: the system's
	// Ahead is how far decisions are ahead of the clocks; below 0: behind. It is 0 without a test clock (package
	// testclock).
	Ahead time.Duration
	// Changed is called with the skew when the clocks start or stop agreeing. It must not block. nil: it is not called.
	Changed func(agree bool, skew time.Duration)
}

// Clock keeps the newest reading.
type Clock struct {
	cfg Config

	mu       sync.Mutex
	ahead    time.Duration
	decision time.Time // at the newest reading, in UTC
	read     time.Time // when it was read, with the monotonic reading: setting the instance's clock does not change it
	skew     time.Duration
	disagree bool
}

// New returns a clock that assumes that PostgreSQL's clock equals the instance's until the first reading.
func New(cfg Config) *Clock {
	if cfg.SkewMax == 0 {
		cfg.SkewMax = SkewMaxDefault
	}
	return &Clock{cfg: cfg, ahead: cfg.Ahead}
}

// Begin returns the time of the instance's clock, for Agree. Call it before PostgreSQL is queried. The result has no
// monotonic reading, because that would hide steps of the clock.
func (c *Clock) Begin() time.Time {
	if c.cfg.Wall == nil {
		return time.Now().Round(0)
	}
	return c.cfg.Wall().Round(0)
}

// Agree returns the decision, in UTC. database is the time of PostgreSQL's clock from a query that was sent at began.
// Call Agree as soon as the answer has arrived.
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

// Skew returns how far PostgreSQL's clock was ahead of the instance's clock. began and ended are the times of the
// instance's clock before the query was sent and after the answer arrived. If PostgreSQL's time is between began and
// ended, Skew returns 0; otherwise it returns the distance to the nearer one.
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

// Now returns the decision without a query to PostgreSQL, in UTC: the newest decision plus the time that has passed
// since then. Before the first reading it is the instance's clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() {
		return c.Begin().UTC().Add(c.ahead)
	}
	return c.decision.Add(time.Since(c.read))
}

// Advance moves all later decisions ahead. by may be negative only before the first reading.
func (c *Clock) Advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
	c.decision = c.decision.Add(by)
}

// Ahead returns how far decisions are ahead of the clocks.
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
