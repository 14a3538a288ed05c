package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
)

const (
	// maxBlocks is the largest number of blocks in force. Every instance holds all of them (300 bytes each), and
	// reads all of them after a change, in about 150 ms. Lists of many thousands of addresses belong in a firewall.
	maxBlocks = 50_000

	// blocksPerTenant is the largest number of blocks in force that the keys of one tenant have created.
	blocksPerTenant = 1000

	// forgottenAtOnce is the largest number of expired blocks that a write deletes. A write adds one block and can
	// delete more blocks, so expired blocks do not accumulate.
	forgottenAtOnce = 100
)

// PutBlock creates or replaces a block. It returns the stored block and whether it is new. It refuses a block that
// has expired. If maxBlocks blocks are in force, it refuses a new block with errcode.Conflict. If keys of the caller's
// tenant have created as many as they may, it refuses a new block with errcode.TooMany.
func (s *Store) PutBlock(ctx context.Context, b block.Block) (stored block.Block, created bool, err error) {
	if err := validate(&b); err != nil {
		return block.Block{}, false, err
	}
	b.Normalize()
	err = s.write(ctx, "put block", alone, func(ctx context.Context, tx *txn) error {
		before, err := tx.block(ctx, &b)
		if err != nil {
			return err
		}
		created = before == nil
		stored, err = tx.putBlock(ctx, before, b)
		return err
	})
	return stored, created, err
}

// Block returns the block in force of that kind and value. tenant is the tenant of a blocked subject. It may be empty
// if only one tenant has a block of a subject with this name.
func (s *Store) Block(ctx context.Context, kind, value, tenant string) (b block.Block, err error) {
	key, faults := block.Key(kind, value, tenant)
	if len(faults) > 0 {
		return b, invalid(faults)
	}
	err = s.read(ctx, "read block", func(ctx context.Context, tx *txn) error {
		b, err = tx.oneBlock(ctx, &key)
		return err
	})
	return b, err
}

// ListBlocks returns a page of the blocks in force, by kind, tenant and value.
func (s *Store) ListBlocks(ctx context.Context, p listing.Query) (list listing.Page[block.Block], err error) {
	var c check.Checker
	c.Require(p.Limit >= 1 && p.Limit <= listing.Max, "limit", "must be an integer from 1 to %d", listing.Max)
	after, ok := block.ParseCursor(p.Cursor)
	c.Require(ok, "cursor", listing.MustBeCursor)
	if err := invalid(c.Faults); err != nil {
		return list, err
	}
	err = s.read(ctx, "list blocks", func(ctx context.Context, tx *txn) error {
		items, err := tx.blocks(ctx, "SelectBlocks", after[0], after[1], after[2], p.Limit+1, p.Tenant)
		if err != nil {
			return err
		}
		list = listing.Page[block.Block]{Items: items}
		if len(items) > p.Limit {
			list.Items = items[:p.Limit]
			list.NextCursor = list.Items[p.Limit-1].Cursor()
		}
		return nil
	})
	return list, err
}

// DeleteBlock deletes a block. The arguments identify the block as in Block.
func (s *Store) DeleteBlock(ctx context.Context, kind, value, tenant string) error {
	key, faults := block.Key(kind, value, tenant)
	if len(faults) > 0 {
		return invalid(faults)
	}
	return s.write(ctx, "delete block", alone, func(ctx context.Context, tx *txn) error {
		b, err := tx.oneBlock(ctx, &key)
		if err != nil {
			return err
		}
		return tx.deleteBlock(ctx, &b)
	})
}

func (tx *txn) deleteBlock(ctx context.Context, b *block.Block) error {
	_, err := tx.exec(ctx, "DeleteBlock", b.Kind, b.Tenant, b.Value)
	tx.changed(ctx, kindBlock, b.ID(), change{action: "delete", tenant: b.Of(), before: b})
	return wrap("delete", err)
}

// readBlocks reads all blocks in force.
func (s *Store) readBlocks(ctx context.Context, now time.Time) (*block.Index, error) {
	var blocks []block.Block
	err := s.fill(ctx, "read the blocks", func(ctx context.Context, tx *txn) (err error) {
		blocks, err = tx.blocks(ctx, "SelectBlocks", "", "", "", unlimited, "")
		return err
	})
	if err != nil {
		return nil, err
	}
	return block.NewIndex(blocks, now), nil
}

// block reads the block in force with the kind, tenant and value of b. It returns nil if no such block is in force.
func (tx *txn) block(ctx context.Context, b *block.Block) (*block.Block, error) {
	items, err := tx.blocks(ctx, "SelectBlock", b.Kind, b.Tenant, b.Value)
	return first(items), err
}

// oneBlock reads the block with the kind, tenant and value of key. If key is a subject without a tenant, oneBlock
// fails if several tenants have a block of a subject with this name.
func (tx *txn) oneBlock(ctx context.Context, key *block.Block) (block.Block, error) {
	var tenant *string
	if key.Kind != block.KindSubject || key.Tenant != "" {
		tenant = &key.Tenant
	}
	items, err := tx.blocks(ctx, "SelectBlock", key.Kind, tenant, key.Value)
	if err == nil && len(items) > 1 {
		return block.Block{}, errcode.Errorf(errcode.InvalidArgument, "tenant",
			"is required: several tenants have a blocked subject of this name")
	}
	return one(items, err, errcode.Errorf(errcode.NotFound, "", "no block of %s %.128q exists", key.Kind, key.Value))
}

func (tx *txn) blocks(ctx context.Context, statement string, args ...any) ([]block.Block, error) {
	now, err := tx.now(ctx)
	if err != nil {
		return nil, err
	}
	rows := tx.query(ctx, statement, append(args, now)...)
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (block.Block, error) {
		var b block.Block
		var expires *time.Time
		err := row.Scan(&b.Kind, &b.Tenant, &b.Value, &b.Action, &expires, &b.Reason, &b.CreatedAt, &b.UpdatedAt)
		b.ExpiresAt, b.CreatedAt, b.UpdatedAt = period.OrZero(expires), b.CreatedAt.UTC(), b.UpdatedAt.UTC()
		return b, err
	})
	return items, wrap("select blocks", err)
}

// putBlock stores b, which is normalized. The argument `before` is the stored block, read under the catalogue's lock.
// It is nil if b is new.
func (tx *txn) putBlock(ctx context.Context, before *block.Block, b block.Block) (block.Block, error) {
	if before != nil && b.Same(*before) {
		return *before, nil
	}
	now, err := tx.now(ctx)
	if err != nil {
		return block.Block{}, err
	}
	if _, err := tx.exec(ctx, "ForgetBlocks", forgottenAtOnce, now); err != nil {
		return block.Block{}, wrap("forget expired blocks", err)
	}
	if before == nil {
		var n int
		if err := tx.queryRow(ctx, "CountBlocks", now).Scan(&n); err != nil {
			return block.Block{}, wrap("count blocks", err)
		}
		if n >= maxBlocks {
			return block.Block{}, errcode.Errorf(errcode.Conflict, "",
				"%d blocks are in force, at most %d are allowed; block prefixes instead of single addresses",
				n, maxBlocks)
		}
		share := auditlog.Share{Kind: kindBlock, Most: blocksPerTenant, Whole: maxBlocks}
		err := share.Check(ctx, tx, n, func(tenant string) (made []auditlog.Made, err error) {
			exist, err := tx.blocks(ctx, "SelectBlocks", "", "", "", unlimited, tenant)
			for i := range exist {
				made = append(made, auditlog.Made{ID: exist[i].ID(), At: exist[i].CreatedAt})
			}
			return made, err
		})
		if err != nil {
			return block.Block{}, err
		}
	}
	expires := period.OrNil(b.ExpiresAt)
	row := tx.queryRow(ctx, "UpsertBlock", b.Kind, b.Tenant, b.Value, b.Action, expires, b.Reason, now)
	err = row.Scan(&b.CreatedAt, &b.UpdatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return block.Block{}, errcode.Errorf(errcode.InvalidArgument, "expires_at", "must be in the future")
	}
	b.CreatedAt, b.UpdatedAt = b.CreatedAt.UTC(), b.UpdatedAt.UTC()
	tx.changed(ctx, kindBlock, b.ID(), change{
		action: "put", tenant: b.Of(), before: orNil(before), after: &b, reason: b.Reason,
	})
	return b, wrap("store block "+b.ID(), err)
}
