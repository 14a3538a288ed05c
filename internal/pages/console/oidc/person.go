package oidc

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

const (
	// AttemptMax is the longest time that a sign-in may take.
	AttemptMax = 10 * time.Minute

	// attemptBytes is the maximum length of an encrypted attempt in bytes. Browsers accept cookies of 4 kB, including
	// their names.
	attemptBytes = 3500

	nameMax      = 100
	personPrefix = "oidc:"
	subjectMax   = 255 // the maximum in OpenID Connect
	textMax      = 950 // in bytes: a session can store about a kilobyte
)

// Person is a person who has signed in, with the person's rights. A session stores it in encrypted form.
type Person struct {
	Subject string   `json:"s"`
	Name    string   `json:"n"`
	Scopes  []string `json:"r"`
	Tenant  string   `json:"t,omitempty"`
	Rules   string   `json:"v"` // id of the set of rules that gave the rights
	EndsAt  int64    `json:"e"` // Unix seconds
}

// ID returns the name of the person in the audit log and the journal. The name is the prefix `oidc:` and the subject of
// the ID token. If this is not a valid id, the name has a hash of the subject instead of the subject.
func (p *Person) ID() string {
	if id := personPrefix + p.Subject; bound.ID(id) {
		return id
	}
	sum := sha256.Sum256([]byte(p.Subject))
	return personPrefix + hex.EncodeToString(sum[:16])
}

// Text returns the person in the form that a session stores instead of a key's secret.
func (p *Person) Text() (string, error) {
	if len(p.Subject) > subjectMax {
		return "", refuse("The identity provider's name for your account has more than %d bytes.", subjectMax)
	}
	text, err := json.Marshal(p)
	if err == nil && len(text) > textMax {
		return "", refuse("The identity provider's names for your account are too long.")
	}
	return personPrefix + string(text), err
}

// IsPerson reports whether the text that a session has stored is a person, and not the secret of a key.
func IsPerson(kept string) bool { return strings.HasPrefix(kept, personPrefix) }

// Key returns a key with the rights of the person that a session has stored. It returns nil if the person's time has
// ended or the rules have changed since the sign-in.
func (p *Provider) Key(kept string) *access.Key {
	if p == nil {
		return nil
	}
	var who Person
	if json.Unmarshal([]byte(strings.TrimPrefix(kept, personPrefix)), &who) != nil || who.Subject == "" || who.Rules != p.cfg.Rules.id || p.now().Unix() >= who.EndsAt {
		return nil
	}
	scopes, ok := access.ParseScopes(who.Scopes)
	if !ok {
		return nil
	}
	return &access.Key{ID: who.ID(), Name: who.Name, Scopes: scopes, Tenant: who.Tenant, ExpiresAt: time.Unix(who.EndsAt, 0).UTC()}
}

// Attempt is a sign-in in progress, as its cookie stores it.
type Attempt struct {
	State    string              `json:"s"`
	Nonce    string              `json:"n"`
	Verifier string              `json:"v"`
	EndsAt   int64               `json:"e"`
	Target   string              `json:"t"`           // the path to open after the sign-in
	Kept     map[string][]string `json:"k,omitempty"` // the kept form
}

func newAttempt(now time.Time) Attempt {
	return Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), EndsAt: now.Add(AttemptMax).Unix()}
}

// IsOf reports whether state, which the provider has sent back, is the state of this attempt. It compares in constant
// time.
func (a *Attempt) IsOf(state string) bool {
	return subtle.ConstantTimeCompare([]byte(a.State), []byte(state)) == 1
}

// Seal encrypts an attempt for its cookie. If the kept form is too large for the cookie, Seal omits the form, and the
// result `whole` is false.
func (p *Provider) Seal(a Attempt) (text string, whole bool, err error) {
	whole = true
	for {
		raw, err := json.Marshal(a)
		if err != nil {
			return "", false, err
		}
		if text = base64.RawURLEncoding.EncodeToString(p.seal.Seal(nil, nil, raw, nil)); len(text) <= attemptBytes {
			return text, whole, nil
		}
		if a.Kept == nil {
			a.Target = "" // the target alone is too long
		}
		a.Kept, whole = nil, false
	}
}

// Open decrypts the attempt in a cookie. It returns an error if the attempt has ended, or if no instance of this
// service has encrypted it.
func (p *Provider) Open(text string) (*Attempt, error) {
	ended := &Error{Status: 400, Detail: "This sign-in took more than 10 minutes, or began in another browser. Begin again."}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > attemptBytes {
		return nil, ended
	}
	raw, err := p.seal.Open(nil, nil, sealed, nil)
	var a Attempt
	if err != nil || json.Unmarshal(raw, &a) != nil || p.now().Unix() >= a.EndsAt {
		return nil, ended
	}
	return &a, nil
}

// seal is the cipher for attempts. Its key is derived from the client's secret, so all instances have the same key.
type seal = cipher.AEAD

func newSeal(secret string) (seal, error) {
	if secret == "" {
		return nil, errors.New("the client has no secret")
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "quotasvc console: attempts of sign-ins", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
