package access

import "time"

// Key is a key of the API without its secrets.
type Key struct {
	ID     string
	Name   string
	Scopes Scope
	Tenant string // empty: all tenants
	Prefix string // the first characters of its newest secret

	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: never
	RevokedAt  time.Time // zero: not revoked
	LastUsedAt time.Time // stored up to a minute after the use; zero: the key was never used
	Status     Status    // by PostgreSQL's clock; set only if the key comes from a Store
}

// Status says whether a key is valid.
type Status string

// The values of Status.
const (
	StatusActive  Status = "active"
	StatusExpired Status = "expired"
	StatusRevoked Status = "revoked"
)

// May reports whether the key gives access to the tenant.
func (k *Key) May(tenant string) bool { return k.Tenant == "" || k.Tenant == tenant }
