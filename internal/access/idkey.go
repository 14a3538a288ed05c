package access

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// IDKey signs the ids that clients get of leases and charges. The migration makes it; all instances have the same.
type IDKey struct {
	Secret []byte // 32 bytes

	// UnsignedUntil is when the ids of leases of the version before, which are not signed, are no longer taken.
	UnsignedUntil time.Time
}

// IDKey reads the key. Errors are *catalog.Error.
func (s *Store) IDKey(ctx context.Context) (k IDKey, err error) {
	err = s.catalog.View(ctx, "read the key of ids", func(ctx context.Context, tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, s.queries["SelectIDKey"]).Scan(&k.Secret, &k.UnsignedUntil); err != nil {
			return fmt.Errorf("read the key of ids: %w", err)
		}
		return nil
	})
	return k, err
}
