package clock

import (
	"sync"
	"time"
)

// SkewMaxDefault is the bound for clocks that agree. NTP keeps hosts within some milliseconds; a virtual machine that was paused is some
// seconds behind until NTP has set it. Half a minute early or late matters to no period.
const SkewMaxDefault = 30 * time.Second

// Config configures a Clock. Zero values mean the defaults.
type Config struct {
	// SkewMax is the greatest difference between clocks that agree, SkewMaxDefault if it is 0. With a very large one
	// PostgreSQL's clock always decides.
	SkewMax time.Duration
	Wall    func() time.Time // the instance's clock; nil: the system's
	// Ahead is how far decisions are ahead of the clocks; below 0: behind. Only a test clock has one (package testclock).
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
	read     time.Time // when that was, with the monotonic reading: setting the instance's clock does not move it
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

// Begin returns the instance's clock, for Agree. Call it before PostgreSQL is queried. The result has no monotonic
// reading, because that would hide steps of the clock.
func (c *Clock) Begin() time.Time {
	if c.cfg.Wall == nil {
		return time.Now().Round(0)
	}
	return c.cfg.Wall().Round(0)
}

// Agree takes PostgreSQL's clock from a query that was sent at began, and returns the decision, in UTC. Call it when
// the answer has arrived.
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

// Skew returns how far PostgreSQL's clock was ahead of the instance's. began and ended are the instance's clock before
// the query was sent and after the answer arrived. It returns 0 if PostgreSQL's clock lies between the two, else the
// distance to the nearer one.
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

// Now returns the decision as far as it is known without a query to PostgreSQL, in UTC: the newest one plus the time
// that has passed since. Before the first reading it is the instance's clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.IsZero() {
		return c.Begin().UTC().Add(c.ahead)
	}
	return c.decision.Add(time.Since(c.read))
}

// Advance moves all later decisions ahead. Only a clock that has not been read yet may be moved back.
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
