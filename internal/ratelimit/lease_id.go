package ratelimit

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

const (
	// nonceLen is the length of a nonce in bytes. With 128 bits, nonces do not collide by chance and cannot be
	// guessed.
	nonceLen = 16

	// leaseTagLen is the length of a tag in bytes. With 128 bits, ids cannot be forged, and two different ids do not
	// get the same tag.
	leaseTagLen = aes.BlockSize
)

// LeaseID identifies a lease, its bucket and its holder, so a renewal or release needs no other data. In its bucket,
// the name of a lease is a hash of the tenant and the nonce. So, in a bucket of a shared rule, a tenant can name only
// its own leases.
type LeaseID struct {
	Tenant    string
	Rule      string
	Metric    string // the rule's label in metrics, not part of the id; empty: Rule is the label
	Dimension string
	Subject   string // of the holder; may be empty
	Address   string // of the holder, 4 or 16 bytes; may be empty

	shared bool // the rule is shared
	// away means that Redis may not have the lease, because it was granted while Redis was away, or is not counted. A
	// renewal adds the lease to Redis if there is room.
	away  bool
	nonce [nonceLen]byte

	unsigned bool // the id has the older format, with neither subject nor address
}

// These are the versions and flags of ids. The first byte of an id is its version. In an unsigned id this byte also
// contains the flags. A signed id has the flags in its encrypted part.
const (
	leaseIDUnsigned = 0x10
	leaseIDSigned   = 0x20
	leaseIDShared   = 0x01
	leaseIDAway     = 0x02
	leaseIDFlags    = leaseIDShared | leaseIDAway
)

// errLeaseID gives no details, because nobody writes ids by hand.
var errLeaseID = errors.New("ratelimit: not a lease id")

// LeaseIDs encodes ids of leases as text for clients, and decodes such texts.
type LeaseIDs struct {
	sign          []byte
	block         cipher.Block
	unsignedUntil time.Time
}

// NewLeaseIDs returns a LeaseIDs that signs and encrypts with key. Ids of the older format, which are not signed, are
// accepted before unsignedUntil.
func NewLeaseIDs(key []byte, unsignedUntil time.Time) *LeaseIDs {
	block, err := aes.NewCipher(sumOf(key, []byte("encrypt"))) // AES-256
	if err != nil {
		panic(err) // fails only for other key lengths
	}
	return &LeaseIDs{sign: sumOf(key, []byte("sign")), block: block, unsignedUntil: unsignedUntil}
}

// KeyFor derives the key for one kind of ids from key. The derived key cannot be computed from the derived keys of
// other kinds.
func KeyFor(key []byte, kind string) []byte { return sumOf(key, []byte(kind)) }

// sumOf returns the HMAC-SHA256 of text under key.
func sumOf(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}

// Text returns the id as text for clients: the base64url encoding of the version, a tag and the encrypted rest. The
// tag signs the rest. It is also the initial counter of the cipher, so that equal leases have equal ids.
func (x *LeaseIDs) Text(id LeaseID) string {
	if id.unsigned {
		return id.unsignedText()
	}
	b := make([]byte, 1+leaseTagLen, 1+leaseTagLen+1+4+len(id.Tenant)+len(id.Rule)+len(id.Dimension)+len(id.Subject)+nonceLen+len(id.Address))
	b[0] = leaseIDSigned
	b = append(b, id.flags())
	b = appendParts(b, id.Tenant, id.Rule, id.Dimension, id.Subject)
	b = append(append(b, id.nonce[:]...), id.Address...)
	tag, rest := b[1:1+leaseTagLen], b[1+leaseTagLen:]
	copy(tag, sumOf(x.sign, rest))
	cipher.NewCTR(x.block, tag).XORKeyStream(rest, rest)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Parse decodes a text that Text returned with the same key. It returns an error for every other text, except for
// valid unsigned ids before unsignedUntil.
func (x *LeaseIDs) Parse(text string, now time.Time) (LeaseID, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) == 0 || base64.RawURLEncoding.EncodeToString(raw) != text { // decoding ignores line ends
		return LeaseID{}, errLeaseID
	}
	if raw[0]&^leaseIDFlags == leaseIDUnsigned && now.Before(x.unsignedUntil) {
		id, rest, err := readLeaseID(raw, 3)
		if err != nil || len(rest) > 0 {
			return LeaseID{}, errLeaseID
		}
		id.unsigned = true
		return id, nil
	}
	if raw[0] != leaseIDSigned || len(raw) < 1+leaseTagLen {
		return LeaseID{}, errLeaseID
	}
	tag, rest := raw[1:1+leaseTagLen], raw[1+leaseTagLen:]
	cipher.NewCTR(x.block, tag).XORKeyStream(rest, rest)
	if !hmac.Equal(tag, sumOf(x.sign, rest)[:leaseTagLen]) {
		return LeaseID{}, errLeaseID
	}
	id, rest, err := readLeaseID(rest, 4)
	id.Address = string(rest)
	return id, err
}

func (id LeaseID) flags() (flags byte) {
	if id.shared {
		flags |= leaseIDShared
	}
	if id.away {
		flags |= leaseIDAway
	}
	return flags
}

// unsignedText returns the id in the older format: flags, then tenant, rule and dimension with a length each, then
// the nonce.
func (id LeaseID) unsignedText() string {
	b := appendParts([]byte{leaseIDUnsigned | id.flags()}, id.Tenant, id.Rule, id.Dimension)
	return base64.RawURLEncoding.EncodeToString(append(b, id.nonce[:]...))
}

func appendParts(b []byte, parts ...string) []byte {
	for _, part := range parts {
		b = append(append(b, byte(len(part))), part...) // at most bound.MaxName, which fits
	}
	return b
}

// readLeaseID decodes the flags, n texts and the nonce. The texts are the first n of: tenant, rule, dimension, subject.
// readLeaseID also returns the rest of b.
func readLeaseID(b []byte, n int) (id LeaseID, rest []byte, err error) {
	if len(b) == 0 {
		return LeaseID{}, nil, errLeaseID
	}
	id.shared, id.away, rest = b[0]&leaseIDShared != 0, b[0]&leaseIDAway != 0, b[1:]
	for _, part := range []*string{&id.Tenant, &id.Rule, &id.Dimension, &id.Subject}[:n] {
		if len(rest) == 0 || len(rest) <= int(rest[0]) {
			return LeaseID{}, nil, errLeaseID
		}
		end := 1 + int(rest[0])
		*part, rest = string(rest[1:end]), rest[end:]
	}
	if len(rest) < nonceLen || !bound.Name(id.Tenant) || !bound.ID(id.Rule) || !rule.IsDimension(id.Dimension) {
		return LeaseID{}, nil, errLeaseID
	}
	copy(id.nonce[:], rest)
	return id, rest[nonceLen:], nil
}

// key returns the key of the lease's bucket.
func (id LeaseID) key() string {
	key, _ := rule.LeaseKey(id.shared, id.Tenant, id.Rule, id.Dimension)
	return key
}

// tag returns the hash tag of the key of the lease's bucket.
func (id LeaseID) tag() string {
	_, tag := rule.LeaseKey(id.shared, id.Tenant, id.Rule, id.Dimension)
	return tag
}

// name returns the lease's name in its bucket.
func (id LeaseID) name() string {
	h := sha256.New()
	h.Write(id.nonce[:])
	h.Write([]byte(id.Tenant))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:nonceLen])
}

// nonceOf returns the nonce for an idempotency key. Every retry gets the same nonce.
func nonceOf(idempotencyKey string) [nonceLen]byte {
	sum := sha256.Sum256([]byte(idempotencyKey))
	return [nonceLen]byte(sum[:nonceLen])
}
