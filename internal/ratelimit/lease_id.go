package ratelimit

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"

	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// nonceLen is 128 bits: ids do not collide by chance and cannot be guessed.
const nonceLen = 16

// LeaseID names a lease and its bucket, so that a renewal or release needs nothing else. Its text is opaque to clients; it is neither
// secret nor signed. A forged id gives a client nothing new: a tenant may use its own buckets anyway, and the name of a lease in its
// bucket is a hash of the tenant and the nonce, so a tenant can name only its own leases of a shared rule.
type LeaseID struct {
	Tenant    string
	Rule      string
	Metric    string // the rule's label in metrics, not part of the id; empty: the rule
	Dimension string

	shared bool // the rule is shared
	// away means that the lease was granted while Redis was away, or is not counted: Redis may not have it. A renewal adds it
	// there, if there is room.
	away  bool
	nonce [nonceLen]byte
}

// The first byte of an id has a version, for later formats, and flags.
const (
	leaseIDVersion = 0x10
	leaseIDShared  = 0x01
	leaseIDAway    = 0x02
	leaseIDFlags   = leaseIDShared | leaseIDAway
)

// errLeaseID gives no details: ids are not written by hand.
var errLeaseID = errors.New("ratelimit: not a lease id")

// String returns the id as clients see it: base64url of version and flags, then tenant, rule and dimension with a length each, then the
// nonce.
func (id LeaseID) String() string {
	b := make([]byte, 0, 3+1+len(id.Tenant)+len(id.Rule)+len(id.Dimension)+nonceLen)
	head := byte(leaseIDVersion)
	if id.shared {
		head |= leaseIDShared
	}
	if id.away {
		head |= leaseIDAway
	}
	b = append(b, head)
	for _, part := range []string{id.Tenant, id.Rule, id.Dimension} {
		b = append(b, byte(len(part))) // at most bound.MaxID
		b = append(b, part...)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, id.nonce[:]...))
}

// ParseLeaseID reads what String writes. It refuses every other text: a lease has exactly one id.
func ParseLeaseID(text string) (LeaseID, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) == 0 || raw[0]&^leaseIDFlags != leaseIDVersion {
		return LeaseID{}, errLeaseID
	}
	id := LeaseID{shared: raw[0]&leaseIDShared != 0, away: raw[0]&leaseIDAway != 0}
	rest := raw[1:]
	for _, part := range []*string{&id.Tenant, &id.Rule, &id.Dimension} {
		if len(rest) == 0 || len(rest) <= int(rest[0]) {
			return LeaseID{}, errLeaseID
		}
		*part, rest = string(rest[1:1+rest[0]]), rest[1+int(rest[0]):]
	}
	if len(rest) != nonceLen || !bound.ID(id.Tenant) || !bound.ID(id.Rule) || !rule.IsDimension(id.Dimension) {
		return LeaseID{}, errLeaseID
	}
	copy(id.nonce[:], rest)
	if id.String() != text { // the decoder skips line ends
		return LeaseID{}, errLeaseID
	}
	return id, nil
}

// key returns the key of the lease's bucket.
func (id LeaseID) key() string {
	return rule.LeaseKey(id.shared, id.Tenant, id.Rule, id.Dimension)
}

// name returns the lease's name in its bucket.
func (id LeaseID) name() string {
	h := sha256.New()
	h.Write(id.nonce[:])
	h.Write([]byte(id.Tenant))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:nonceLen])
}

// nonceOf returns the nonce for an idempotency key: the same for every retry.
func nonceOf(idempotencyKey string) [nonceLen]byte {
	sum := sha256.Sum256([]byte(idempotencyKey))
	return [nonceLen]byte(sum[:nonceLen])
}
