package access

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// IDKey is the key that signs the ids of leases and charges which clients get. A migration creates it, so all
// instances have the same key.
type IDKey struct {
	Secret []byte // 32 bytes

	// UnsignedUntil is the time until which ids of leases without a signature are accepted. Versions of the service
	// without this key created such ids.
	UnsignedUntil time.Time
}

// IDKey reads the key from PostgreSQL. Errors are *errcode.Error.
func (s *Store) IDKey(ctx context.Context) (k IDKey, err error) {
	err = s.db.View(ctx, "read the key of ids", func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, s.queries["SelectIDKey"]).Scan(&k.Secret, &k.UnsignedUntil); err != nil {
			return fmt.Errorf("read the key of ids: %w", err)
		}
		return nil
	})
	return k, err
}
