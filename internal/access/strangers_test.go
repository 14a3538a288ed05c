package access

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// TestGuesses_TwentyASecondPerAddress: wrong secrets are limited per address. Right secrets are never limited.
func TestGuesses_TwentyASecondPerAddress(t *testing.T) {
	t.Parallel()
	d, err := NewDirectory(nil, bootstrap, Config{})
	require.NoError(t, err)
	now := time.Now()
	guess := func(from string, now time.Time) error {
		_, err := d.Authenticate(t.Context(), "Bearer wrong", at(netip.MustParseAddr(from)), now)
		return err
	}
	for range guessesPerSecond {
		refused(t, Unknown, guess("192.0.2.1", now))
	}
	err = guess("192.0.2.1", now)
	refused(t, TooMany, err)
	r, _ := errors.AsType[*Refusal](err)
	assert.True(t, r.RetryAfter > 0 && r.RetryAfter <= time.Second, "retry after %s", r.RetryAfter)
	refused(t, Unknown, guess("192.0.2.2", now))
	testenv.Must(t).Get(d.Authenticate(t.Context(), "Bearer "+bootstrap, at(home), now))
	refused(t, Unknown, guess("192.0.2.1", now.Add(guessEvery+time.Millisecond)))
	refused(t, TooMany, guess("192.0.2.1", now.Add(guessEvery+time.Millisecond)))
	for n := range guessesPerSecond { // all addresses of one /64 count together
		refused(t, Unknown, guess(fmt.Sprintf("2001:db8::%x", n+1), now))
	}
	refused(t, TooMany, guess("2001:db8::ffff", now))
	refused(t, Unknown, guess("2001:db8:0:1::1", now))
}

// TestStrangers_InventedThings_ShareOneLimit: what does not exist counts for its address, whatever it is. What exists
// neither counts nor is refused.
func TestStrangers_InventedThings_ShareOneLimit(t *testing.T) {
	t.Parallel()
	none := errors.New("none")
	s := NewStrangers([]byte("key"))
	d := testenv.Must(t).Get(NewDirectory(nil, bootstrap, Config{Strangers: s}))
	looked, exists := 0, false
	show := func(from netip.Addr, shown string, made bool) error {
		return s.LookUp(from, shown, made, none, func() error {
			if looked++; exists {
				return nil
			}
			return none
		})
	}
	exists = true
	for n := range 3 * guessesPerSecond {
		require.NoError(t, show(home, fmt.Sprint("right", n), n%2 == 0))
	}
	exists, looked = false, 0
	other := netip.MustParseAddr("192.0.2.2")
	for range 3 {
		require.ErrorIs(t, show(other, "the same", false), none)
	}
	assert.Equal(t, 1, looked, "what does not exist is looked up again")
	looked = 0
	began := time.Now()
	var wait *Refusal
	for n := range 10 * guessesPerSecond { // in far less than a second, but a busy machine may take longer
		if wait, _ = errors.AsType[*Refusal](show(home, fmt.Sprint("wrong", n), n%2 == 1)); wait != nil && n%2 == 0 {
			break
		}
	}
	require.NotNil(t, wait, "nothing is refused")
	assert.True(t, wait.Reason == TooMany && wait.RetryAfter > 0 && wait.RetryAfter <= time.Second, wait)
	most := guessesPerSecond + int(time.Since(began)/guessEvery) + 2
	assert.LessOrEqual(t, looked, most, "look-ups")
	for range 5 * guessesPerSecond { // keys share the limit
		_, err := d.Authenticate(t.Context(), "Bearer wrong", at(home), time.Now())
		if errors.As(err, &wait) && wait.Reason == TooMany {
			break
		}
	}
	refused(t, TooMany, wait)
	exists = true
	require.NoError(t, show(home, "right", true), "what this installation made, from the same address")
	testenv.Must(t).Get(d.Authenticate(t.Context(), "Bearer "+bootstrap, at(home), time.Now()))
}

func TestRefusal_Seconds_WholeAndAtLeastOne(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		0: "1", 1: "1", time.Second: "1", time.Second + 1: "2", 2 * time.Second: "2", time.Minute: "60",
	} {
		assert.Equal(t, want, (&Refusal{RetryAfter: wait}).Seconds(), "%s", wait)
	}
}

// A link or session that has ended is looked up once: it never exists again. What a stranger has invented is looked up
// again after a second.
func TestStrangers_Ended_LookedUpOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		none := errors.New("none")
		s := NewStrangers([]byte("key"))
		for made, want := range map[bool]int{true: 1, false: 3} {
			looked := 0
			for n := range 3 {
				from := netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
				err := s.LookUp(from, fmt.Sprint(made), made, none, func() error { looked++; return none })
				require.ErrorIs(t, err, none)
				time.Sleep(2 * missFor)
			}
			assert.Equal(t, want, looked, "made: %t", made)
		}
	})
}

// TestStrangers_FailedLookUps_Count: while PostgreSQL does not answer, strangers cause no more look-ups than before.
func TestStrangers_FailedLookUps_Count(t *testing.T) {
	t.Parallel()
	s := NewStrangers([]byte("key"))
	began, looked := time.Now(), 0
	for n := range 10 * guessesPerSecond {
		_ = s.LookUp(home, fmt.Sprint(n), false, errors.New("none"), func() error {
			looked++
			return errors.New("away")
		})
	}
	assert.LessOrEqual(t, looked, guessesPerSecond+int(time.Since(began)/guessEvery)+2, "look-ups")
}

func TestStrangers_Secrets_KnownByTheirTag(t *testing.T) {
	t.Parallel()
	s, other := NewStrangers([]byte("key")), NewStrangers([]byte("another key"))
	secret := s.NewSecret("link a", "acme")
	assert.True(t, NewStrangers([]byte("key")).Made("link a", secret[:]), "another instance")
	assert.False(t, s.Made("link b", secret[:]) || s.Made("session", secret[:]), "another use")
	assert.False(t, other.Made("link a", secret[:]), "another key")
	for bit := range 8 * len(secret) {
		forged := secret
		forged[bit/8] ^= 1 << (bit % 8)
		assert.False(t, s.Made("link a", forged[:]), "bit %d", bit)
	}
	assert.False(t, s.Made("link a", secret[1:]) || s.Made("link a", nil), "another length")
	assert.NotEqual(t, secret, s.NewSecret("link a", "acme"))
}

// TestStrangers_Secrets_NameTheirOwner: all secrets of an owner have one name, which only the key relates to the owner.
func TestStrangers_Secrets_NameTheirOwner(t *testing.T) {
	t.Parallel()
	s, other := NewStrangers([]byte("key")), NewStrangers([]byte("another key"))
	name := OwnerOf(s.NewSecret("link a", "acme"))
	assert.Equal(t, name, OwnerOf(s.NewSecret("session", "acme")), "another secret")
	assert.NotEqual(t, name, OwnerOf(s.NewSecret("link a", "globex")), "another owner")
	assert.NotEqual(t, name, OwnerOf(other.NewSecret("link a", "acme")), "another key")
}

func TestGuesses_ManyAddresses_BoundedMemory(t *testing.T) {
	t.Parallel()
	var g guesses
	now := time.Now()
	address := netip.MustParseAddr("10.0.0.0")
	for range addressesMax + 1000 {
		address = address.Next()
		g.take(address, now)
	}
	assert.True(t, len(g.full) <= addressesMax+1, "%d addresses", len(g.full))
	_, wait := g.take(address.Next(), now)
	assert.NotZero(t, wait, "the shared budget has no bound")
	assert.Zero(t, g.wait(address.Next(), now), "others keep a right secret from being looked up")
	_, wait = g.take(address.Next(), now.Add(2*time.Second))
	assert.True(t, wait == 0 && len(g.full) <= 2,
		"%d addresses are remembered after all budgets are full", len(g.full))
}

// TestStrangers_ManyAddresses_RightOnesDoNotCount: what exists does not count, also for addresses that share a budget.
func TestStrangers_ManyAddresses_RightOnesDoNotCount(t *testing.T) {
	t.Parallel()
	s := NewStrangers([]byte("key"))
	later := time.Now().Add(time.Hour) // no address is forgotten
	address := netip.MustParseAddr("10.0.0.0")
	for range addressesMax {
		address = address.Next()
		s.guesses.take(address, later)
	}
	for n := range 3 * guessesPerSecond {
		address = address.Next()
		right := func() error { return nil }
		require.NoError(t, s.LookUp(address, fmt.Sprint(n), false, errors.New("none"), right))
	}
}
