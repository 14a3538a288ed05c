package access

import (
	"crypto/subtle"
	"sync/atomic"
	"time"
)

// Key is a key without its secrets.
type Key struct {
	ID     string
	Name   string
	Scopes Scope
	Tenant string // empty: all tenants
	Prefix string // the beginning of its newest secret

	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: never
	RevokedAt  time.Time // zero: not revoked
	LastUsedAt time.Time // a minute late; zero: never used
	Status     Status    // by PostgreSQL's clock; only on keys from a Store
}

// Status says whether a key works.
type Status string

// The statuses.
const (
	StatusActive  Status = "active"
	StatusExpired Status = "expired"
	StatusRevoked Status = "revoked"
)

// May reports whether the key reaches the tenant.
func (k *Key) May(tenant string) bool { return k.Tenant == "" || k.Tenant == tenant }

// known is a secret in force and its key. It is shared and immutable but for used.
type known struct {
	Key

	hash hash
	ends time.Time     // when the secret stops working, the earlier of the key's end and that of the overlap; zero: never
	used *atomic.Int64 // Unix second of the newest request with the key; nil: nobody asks
}

// matches reports, in constant time, whether k is the secret with this hash.
func (k *known) matches(h *hash) bool { return subtle.ConstantTimeCompare(k.hash[:], h[:]) == 1 }

// worksAt reports whether the secret works at now.
func (k *known) worksAt(now time.Time) bool { return k.ends.IsZero() || now.Before(k.ends) }

// note notes the use at now.
func (k *known) note(now time.Time) {
	if k.used == nil {
		return
	}
	if second := now.Unix(); k.used.Load() < second {
		k.used.Store(second)
	}
}
