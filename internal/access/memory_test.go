package access

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// TestKey_EndDuringARead_StaysEnded: a read that began before the end of a key does not bring the key back.
func TestKey_EndDuringARead_StaysEnded(t *testing.T) {
	t.Parallel()
	d := testenv.Must(t).Get(NewDirectory(nil, bootstrap, Config{}))
	secret, other := newSecret(), newSecret()
	of := func(secret string) *known { return &known{Key: Key{ID: "k"}, hash: hashOf(secret)} }
	read := d.begin()
	d.end("k", ending{at: time.Now(), except: hashOf(other)})
	d.publish([]*known{of(secret), of(other)}, read)
	_, err := d.Authenticate(t.Context(), "Bearer "+secret, at(home), time.Now())
	refused(t, Unknown, err)
	testenv.Must(t).Get(d.Authenticate(t.Context(), "Bearer "+other, at(home), time.Now()))
	d.publish([]*known{of(secret)}, d.begin()) // a later read decides alone
	testenv.Must(t).Get(d.Authenticate(t.Context(), "Bearer "+secret, at(home), time.Now()))
}

// TestKey_EndsDuringARead_AllStay: a key ends twice during a read. The later change does not undo the earlier end.
func TestKey_EndsDuringARead_AllStay(t *testing.T) {
	t.Parallel()
	d := testenv.Must(t).Get(NewDirectory(nil, bootstrap, Config{}))
	now := time.Now()
	first, second, third := newSecret(), newSecret(), newSecret()
	of := func(secret string) *known { return &known{Key: Key{ID: "k"}, hash: hashOf(secret)} }
	works := func(secret string, at time.Time) bool { return d.Knows("Bearer "+secret, at) }
	read := d.begin()
	d.end("k", ending{at: now, except: hashOf(second)})
	d.end("k", ending{at: now.Add(time.Hour), except: hashOf(third)})
	d.publish([]*known{of(first), of(second), of(third)}, read)
	assert.False(t, works(first, now), "the first secret has no overlap")
	assert.True(t, works(second, now), "the second secret during its overlap")
	assert.False(t, works(second, now.Add(time.Hour)), "the second secret after its overlap")
	assert.True(t, works(third, now.Add(time.Hour)), "the third secret")
}

// TestRead_WhilePostgreSQLIsAway_TriedTwiceASecond: a key that is revoked after an outage ends within a second. So an
// instance finds out in far less time that the outage has ended.
func TestRead_WhilePostgreSQLIsAway_TriedTwiceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := testenv.Must(t).Get(pgxpool.New(t.Context(), "postgres://127.0.0.1:1/none")) // opens no connection
		defer pool.Close()
		var latest time.Time
		var longest time.Duration
		away := func() error {
			if !latest.IsZero() {
				longest = max(longest, time.Since(latest))
			}
			latest = time.Now()
			return errors.New("away")
		}
		store := NewStore(pgstore.New(pool, pgstore.Config{Away: away}))
		cfg := Config{Log: slog.New(slog.DiscardHandler), RereadEvery: time.Hour}
		d := testenv.Must(t).Get(NewDirectory(store, bootstrap, cfg))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d.Changed()
		d.follow(ctx)
		assert.True(t, longest > 0 && longest <= time.Second/2, "a pause of %s", longest)
	})
}

// TestAge_GrowsFromTheFirstUnreadChange: the keys in memory count as right while announcements are received, until a
// change is announced that is not read.
func TestAge_GrowsFromTheFirstUnreadChange(t *testing.T) {
	t.Parallel()
	d := testenv.Must(t).Get(NewDirectory(nil, bootstrap, Config{}))
	assert.Zero(t, d.age(), "before the first read")
	d.publish(nil, d.begin())
	read := d.right
	d.Heard()
	heard := d.right
	assert.True(t, heard.After(read), "announcements are received")
	before := d.begin()
	d.Changed()
	d.Heard()
	d.publish(nil, before)
	d.Heard()
	assert.WithinRange(t, d.right, heard, before.began, "a change is not read")
	d.publish(nil, d.begin())
	d.Heard()
	assert.True(t, d.right.After(before.began), "all is read")
}
