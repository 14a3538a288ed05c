package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/netip"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/recent"
)

const (
	// missFor is how long it is remembered that something does not exist, so that it is not looked up again.
	missFor = time.Second

	// missesMax bounds what is remembered, which takes 80 bytes each.
	missesMax = 50_000

	// SecretBytes is the length of a secret that Strangers makes. It has taggedBytes and a tag of the same length. The
	// first ownerBytes say for whom the secret was made, and nobody can guess the other tagged bytes.
	SecretBytes = 32
	taggedBytes = 16
	ownerBytes  = 4
)

// Strangers bounds what is looked up for visitors who show what nobody gave them: keys, links, and cookies of the
// console and of the customers' pages. All of them share one limit per address. All methods may be called from any
// goroutine.
type Strangers struct {
	key     []byte // makes the tags
	guesses guesses
	misses  *recent.Cache[hash, time.Time]
	refuse  func(Reason, time.Duration) error
}

// NewStrangers returns a new limit. The key makes the tags of secrets, so all instances need the same key.
func NewStrangers(key []byte) *Strangers {
	return &Strangers{
		key: key, misses: recent.NewCache[hash, time.Time](missesMax, nil),
		refuse: func(why Reason, wait time.Duration) error { return &Refusal{Reason: why, RetryAfter: wait} },
	}
}

// NewSecret returns a random secret with a tag, for one use, such as a certain link. owner names who gets it, such as
// a tenant.
func (s *Strangers) NewSecret(use, owner string) (secret [SecretBytes]byte) {
	_, _ = rand.Read(secret[ownerBytes:taggedBytes]) // Read never returns an error: it ends the process instead
	copy(secret[:ownerBytes], s.sum("owner of a secret", owner))
	copy(secret[taggedBytes:], s.tag(use, secret[:taggedBytes]))
	return secret
}

// Made reports whether NewSecret returned this secret for this use, on any instance with the same key.
func (s *Strangers) Made(use string, secret []byte) bool {
	return len(secret) == SecretBytes && hmac.Equal(secret[taggedBytes:], s.tag(use, secret[:taggedBytes]))
}

func (s *Strangers) tag(use string, tagged []byte) []byte {
	return s.sum("secret of a "+use, string(tagged))[:SecretBytes-taggedBytes]
}

// sum returns a hash of a text that nobody can compute without the key.
func (s *Strangers) sum(purpose, text string) []byte {
	sum := hmac.New(sha256.New, s.key)
	sum.Write([]byte("quotasvc: " + purpose + "\x00" + text))
	return sum.Sum(nil)
}

// OwnerOf returns a short name of the owner for whom NewSecret made a secret. It does not reveal the owner. Different
// owners rarely have the same name.
func OwnerOf(secret [SecretBytes]byte) string { return string(secret[:ownerBytes]) }

// LookUp calls the function `look`, which looks up what a visitor at an address shows, and returns its error. The
// error `none` means that it does not exist. If it did not exist less than a second ago, LookUp does not look again.
// What has the tag of this installation (made) and does not exist has ended for ever, so it is looked up once.
//
// Whatever does not exist counts for the address. Beyond the limit, LookUp fails with a *Refusal, and looks up only
// what has the tag. What exists never counts. What has no tag also counts if its look-up fails: a stranger who makes
// look-ups fail, by too many of them or by hanging up, gains no further ones.
func (s *Strangers) LookUp(from netip.Addr, shown string, made bool, none error, look func() error) error {
	now, sum := time.Now(), hashOf(shown)
	var limited netip.Prefix
	var wait time.Duration
	if !made {
		if limited, wait = s.guesses.take(from, now); wait > 0 {
			return s.refuse(TooMany, wait)
		}
	}
	if at, ok := s.misses.Peek(sum); !ok || !made && now.Sub(at) >= missFor {
		err := look()
		if err == nil && !made {
			s.guesses.giveBack(limited)
		}
		if !errors.Is(err, none) {
			return err
		}
		s.misses.Put(sum, time.Now())
	}
	if made {
		if _, wait = s.guesses.take(from, now); wait > 0 {
			return s.refuse(TooMany, wait)
		}
	}
	return none
}
