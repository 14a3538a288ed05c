package access

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// IDKey signs the ids of leases and charges that clients get. A migration creates it; all instances have the same.
type IDKey struct {
	Secret []byte // 32 bytes

	// UnsignedUntil is the time after which ids of leases from the version before, which have no signature, are no
	// longer accepted.
	UnsignedUntil time.Time
}

// IDKey reads the key. Errors are *errcode.Error.
func (s *Store) IDKey(ctx context.Context) (k IDKey, err error) {
	err = s.db.View(ctx, "read the key of ids", func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, s.queries["SelectIDKey"]).Scan(&k.Secret, &k.UnsignedUntil); err != nil {
			return fmt.Errorf("read the key of ids: %w", err)
		}
		return nil
	})
	return k, err
}
