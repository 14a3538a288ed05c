package rule

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

const (
	// dimensionLen is the length of a dimension in characters of base64url, which is 96 bits. For a billion subjects
	// of one rule, the probability that any two of them share a bucket is 10^-11. Each additional character would
	// cost memory in every key.
	dimensionLen = 16
)

// Bucket identifies one bucket of a rule.
type Bucket struct {
	Tenant string
	// Rule must be a result of Compile; it may be of any kind.
	Rule *Rule
	// Dimension is a result of the function Dimension, or empty if the bucket has none.
	Dimension string
}

// Name returns the bucket's key in Redis, which is the argument of Limiter.Reset. The error is a *FieldError.
func (b Bucket) Name() (string, error) {
	switch {
	case b.Rule == nil || b.Rule.letter == "":
		return "", &FieldError{"rule", "is not compiled"}
	case !IsDimension(b.Dimension):
		return "", &FieldError{"dimension", "is not a result of Dimension"}
	}
	if !bound.Name(b.Tenant) && !b.Rule.Shared {
		return "", &FieldError{"tenant", bound.MustBeName}
	}
	key, _ := b.Rule.BucketKey(b.Tenant, b.Dimension)
	return key, nil
}

// Dimension hashes the values that separate the buckets of one rule, in a fixed order, to 96 bits in base64url.
// Values may be any bytes, because keys contain only the hash.
func Dimension(values ...string) string {
	var stack [256]byte // enough for a subject and a route pattern; longer values go to the heap
	all := stack[:0]
	for _, v := range values {
		all = binary.BigEndian.AppendUint64(all, uint64(len(v))) // the length, so that ("ab","c") and ("a","bc") differ
		all = append(all, v...)
	}
	sum := sha256.Sum256(all)
	var text [dimensionLen]byte
	base64.RawURLEncoding.Encode(text[:], sum[:dimensionLen*6/8])
	return string(text[:])
}

// BucketKey returns the key of a bucket and its hash tag:
//
//	rl:{<tenant>}<kind>:<rule>[/<dimension>]   of a tenant: all its buckets are in one slot
//	rl:{<rule>[/<dimension>]}<kind>            of a shared rule: each bucket is in a separate slot
//
// The ids of rules contain no brace and no slash, and those of tenants are written by bound.Tag. A key of a tenant has
// a colon after its kind, and a key of a shared rule ends there. So different buckets have different keys. Keys are
// short, because memory is allocated in size classes. A key of at most 44 bytes takes 48 bytes of memory. With a
// dimension, the ids of tenant and rule may then have 20 bytes together.
func (r *Rule) BucketKey(tenant, dimension string) (key, tag string) {
	return bucketKeyOf(r.letter, r.Shared, tenant, r.ID, dimension)
}

// BanKey returns the key of a bucket's ban, and of the denials that count towards it. It is in the same slot as the
// bucket. No key of a bucket ends like this.
func BanKey(bucket string) string { return bucket + "!" }

// LeaseKey returns the key and hash tag of a bucket of a concurrency rule, as BucketKey does for a compiled rule.
func LeaseKey(shared bool, tenant, rule, dimension string) (key, tag string) {
	return bucketKeyOf(KindConcurrency.letter(), shared, tenant, rule, dimension)
}

func bucketKeyOf(kind string, shared bool, tenant, rule, dimension string) (key, tag string) {
	if dimension != "" {
		dimension = "/" + dimension
	}
	if shared {
		tag = rule + dimension
		return "rl:{" + tag + "}" + kind, tag
	}
	tag = bound.Tag(tenant)
	return "rl:{" + tag + "}" + kind + ":" + rule + dimension, tag
}

// IsDimension reports whether s is empty or has the form of a result of Dimension.
func IsDimension(s string) bool {
	if s == "" {
		return true
	}
	if len(s) != dimensionLen {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !alnum && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
