package access

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// IDKey signs the ids of leases and charges that clients get. A migration creates it; all instances have the same
// key.
type IDKey struct {
	Secret []byte // 32 bytes

	// UnsignedUntil is the time until which ids of leases without a signature are accepted. The previous version
	// created such ids.
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
