package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// at returns a Clock. Its Config.Wall returns the instants in `walls` one after the other, and then repeats the last
// instant.
func at(skewMax time.Duration, changed func(bool, time.Duration), walls ...time.Time) *Clock {
	return New(Config{SkewMax: skewMax, Changed: changed, Wall: func() time.Time {
		now := walls[0]
		if len(walls) > 1 {
			walls = walls[1:]
		}
		return now
	}})
}

func TestClock_Agree_IsPostgresClock(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, time.Second, -time.Second, 30 * time.Second, -30 * time.Second} {
		c := at(0, nil, noon)
		got := c.Agree(c.Begin(), noon.Add(skew))
		assert.True(t, got.Equal(noon.Add(skew)), "skew %s: decided at %s", skew, got)
	}
}

func TestClock_Disagree_IsTheEarlier(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{30*time.Second + 1, -30*time.Second - 1, 240 * time.Hour, -240 * time.Hour} {
		c := at(0, nil, noon)
		want := noon
		if skew < 0 {
			want = noon.Add(skew)
		}
		got := c.Agree(c.Begin(), noon.Add(skew))
		assert.True(t, got.Equal(want), "skew %s: decided at %s", skew, got)
		if got := c.Now(); got.Before(want) || got.After(want.Add(time.Minute)) {
			t.Errorf("skew %s: now %s", skew, got)
		}
		if got, agree := c.State(); got != skew || agree {
			t.Errorf("skew %s: state %s, %t", skew, got, agree)
		}
	}
}

// The instance's clock is set after a reading. This does not change Now until the next reading.
func TestClock_InstanceClockSet_NowGoesOn(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, skewMax := range []time.Duration{0, 10_000 * day} {
		for _, set := range [][2]time.Duration{{400 * day, 0}, {10 * day, 0}, {0, 10 * day}, {0, -10 * day}, {time.Minute, -time.Minute}} {
			wall := noon.Add(set[0])
			c := New(Config{SkewMax: skewMax, Wall: func() time.Time { return wall }})
			c.Agree(c.Begin(), noon)
			wall = noon.Add(set[1])
			if got := c.Now(); got.Before(noon) || got.After(noon.Add(30*time.Second)) {
				t.Errorf("bound %s, set from %s to %s: now %s", skewMax, set[0], set[1], got)
			}
		}
	}
}

// A query that took a minute is no skew. PostgreSQL may have read its clock at any instant in this minute.
func TestClock_LongRoundTrip_IsNoSkew(t *testing.T) {
	t.Parallel()
	for _, read := range []time.Duration{0, 30 * time.Second, time.Minute} {
		c := at(time.Second, nil, noon, noon.Add(time.Minute))
		got := c.Agree(c.Begin(), noon.Add(read))
		assert.True(t, got.Equal(noon.Add(read)), "read after %s: decided at %s", read, got)
		skew, agree := c.State()
		assert.True(t, skew == 0 && agree, "read after %s: skew %s, agree %t", read, skew, agree)
	}
}

func TestClock_VeryLongBound_TrustsPostgres(t *testing.T) {
	t.Parallel()
	c := at(1<<63-1, nil, noon)
	for _, skew := range []time.Duration{100 * 365 * 24 * time.Hour, -100 * 365 * 24 * time.Hour} {
		got := c.Agree(c.Begin(), noon.Add(skew))
		assert.True(t, got.Equal(noon.Add(skew)), "skew %s: decided at %s", skew, got)
	}
}

// Changed is called once per change. It is called for each change even if the skew varies around SkewMax.
func TestClock_Changes_AreToldOnce(t *testing.T) {
	t.Parallel()
	var told []bool
	c := at(time.Minute, func(agree bool, _ time.Duration) { told = append(told, agree) }, noon)
	for _, skew := range []time.Duration{0, time.Second, time.Hour, time.Hour, -time.Hour, time.Minute, time.Minute + 1, 0, 0} {
		c.Agree(c.Begin(), noon.Add(skew))
	}
	assert.True(t, len(told) == 4 && !told[0] && told[1] && !told[2] && told[3],
		"told %v, want [false true false true]", told)
}

// A decision is never later than PostgreSQL's clock. It is never later than the instance's clock by more than
// SkewMax.
func TestClock_AnyReading_NoClockDecidesAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		span := rapid.Int64Range(-int64(30*24*time.Hour), int64(30*24*time.Hour))
		wall := noon.Add(time.Duration(span.Draw(rt, "wall")))
		took := time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(rt, "took"))
		database := noon.Add(time.Duration(span.Draw(rt, "database")))
		c := at(SkewMaxDefault, nil, wall, wall.Add(took))
		got := c.Agree(c.Begin(), database)
		require.True(rt, !got.After(database) && !got.After(wall.Add(took+SkewMaxDefault)),
			"decided at %s: PostgreSQL %s, instance %s to %s", got, database, wall, wall.Add(took))
	})
}

// A test clock changes the decisions. It does not change the skew or the readings.
func TestClock_Advance_MovesDecisionsOnly(t *testing.T) {
	t.Parallel()
	const month, hour = 31 * 24 * time.Hour, time.Hour
	c := New(Config{Ahead: hour, Wall: func() time.Time { return noon }})
	got := c.Now()
	assert.True(t, got.Equal(noon.Add(hour)), "before the first reading: %s", got)
	for range 2 {
		want := noon.Add(c.Ahead())
		if got := c.Agree(c.Begin(), noon); !got.Equal(want) {
			t.Errorf("decided at %s, want %s", got, want)
		}
		skew, agree := c.State()
		assert.True(t, skew == 0 && agree, "skew %s, agree %t", skew, agree)
		c.Advance(month)
		if got := c.Now(); got.Before(want.Add(month)) || got.After(want.Add(month+time.Minute)) {
			t.Errorf("now %s, want %s", got, want.Add(month))
		}
	}
	assert.Equal(t, hour+2*month, c.Ahead())
}
