package catalog

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// MaxBlocks bounds the blocks in force: every instance holds all of them (300 bytes each) and reads all of them anew, in
	// about 150 ms, after a change. Lists of many thousands of addresses belong in a firewall, as prefixes.
	maxBlocks = 50_000

	// forgottenAtOnce is how many expired blocks are deleted by whoever writes one: more than it adds.
	forgottenAtOnce = 100
)

// PutBlock creates or replaces a block and returns it as it is stored, and whether it is new. One that would be over already
// is refused, and so is one beyond MaxBlocks, with CodeConflict.
func (s *Store) PutBlock(ctx context.Context, b Block) (stored Block, created bool, err error) {
	if err := validate(&b); err != nil {
		return Block{}, false, err
	}
	b.normalize()
	err = s.write(ctx, "put block", writeTimeout, true, func(ctx context.Context, tx *txn) error {
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

// Block returns the block in force of that kind and value. tenant names whose subject it is; it may be "" for a subject of
// only one blocked tenant.
func (s *Store) Block(ctx context.Context, kind, value, tenant string) (b Block, err error) {
	key, err := blockKey(kind, value, tenant)
	if err != nil {
		return b, err
	}
	err = s.read(ctx, "read block", func(ctx context.Context, tx *txn) error {
		b, err = tx.oneBlock(ctx, &key)
		return err
	})
	return b, err
}

// ListBlocks returns a page of the blocks in force, by kind, tenant and value.
func (s *Store) ListBlocks(ctx context.Context, p Page) (list List[Block], err error) {
	var c checker
	c.require(p.Limit >= 1 && p.Limit <= MaxPage, "limit", "must be an integer from 1 to %d", MaxPage)
	after, ok := parseBlockCursor(p.Cursor)
	c.require(ok, "cursor", mustBeCursor)
	if err := c.err(); err != nil {
		return list, err
	}
	err = s.read(ctx, "list blocks", func(ctx context.Context, tx *txn) error {
		items, err := tx.blocks(ctx, "SelectBlocks", after[0], after[1], after[2], p.Limit+1)
		if err != nil {
			return err
		}
		list = List[Block]{Items: items}
		if len(items) > p.Limit {
			list.Items = items[:p.Limit]
			list.NextCursor = list.Items[p.Limit-1].cursor()
		}
		return nil
	})
	return list, err
}

// DeleteBlock ends a block. tenant is as in Block.
func (s *Store) DeleteBlock(ctx context.Context, kind, value, tenant string) error {
	key, err := blockKey(kind, value, tenant)
	if err != nil {
		return err
	}
	return s.write(ctx, "delete block", writeTimeout, true, func(ctx context.Context, tx *txn) error {
		b, err := tx.oneBlock(ctx, &key)
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, "DeleteBlock", b.Kind, b.Tenant, b.Value); err != nil {
			return wrap("delete", err)
		}
		tx.changed(kindBlock, b.id())
		return nil
	})
}

// readBlocks reads all blocks in force.
func (s *Store) readBlocks(ctx context.Context, now time.Time) (*Blocks, error) {
	var blocks []Block
	err := s.read(ctx, "read the blocks", func(ctx context.Context, tx *txn) (err error) {
		blocks, err = tx.blocks(ctx, "SelectBlocks", "", "", "", unlimited)
		return err
	})
	if err != nil {
		return nil, err
	}
	return newBlocks(blocks, now), nil
}

// blockKey is a block's name in its one form.
func blockKey(kind, value, tenant string) (Block, error) {
	b := Block{Kind: kind, Value: value, Tenant: tenant}
	var c checker
	b.checkKey(&c)
	b.normalize()
	return b, c.err()
}

// id is how announcements and diffs name a block.
func (b *Block) id() string {
	if b.Kind == BlockSubject {
		return b.Kind + " " + b.Tenant + "/" + b.Value
	}
	return b.Kind + " " + b.Value
}

func (b *Block) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(b.Kind + " " + b.Tenant + " " + b.Value)) // none of them has a blank
}

func parseBlockCursor(cursor string) ([3]string, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) == 0 {
		return [3]string{}, err == nil
	}
	parts := strings.Split(string(raw), " ")
	if len(parts) != 3 {
		return [3]string{}, false
	}
	key, err := blockKey(parts[0], parts[2], parts[1])
	return [3]string{parts[0], parts[1], parts[2]}, err == nil && key.cursor() == cursor
}

// block reads the block in force with b's name, nil if there is none.
func (tx *txn) block(ctx context.Context, b *Block) (*Block, error) {
	items, err := tx.blocks(ctx, "SelectBlock", b.Kind, b.Tenant, b.Value)
	return first(items), err
}

// oneBlock reads the block with key's name, or the only one if it is a subject's without a tenant.
func (tx *txn) oneBlock(ctx context.Context, key *Block) (Block, error) {
	var tenant *string
	if key.Kind != BlockSubject || key.Tenant != "" {
		tenant = &key.Tenant
	}
	items, err := tx.blocks(ctx, "SelectBlock", key.Kind, tenant, key.Value)
	if err == nil && len(items) > 1 {
		return Block{}, fieldError(CodeInvalidArgument, "tenant", "is required: subjects of several tenants have this name")
	}
	return one(items, err, errorf(CodeNotFound, "there is no block of %s %.128q", key.Kind, key.Value))
}

func (tx *txn) blocks(ctx context.Context, statement string, args ...any) ([]Block, error) {
	rows, err := tx.query(ctx, statement, args...)
	if err != nil {
		return nil, wrap("select blocks", err)
	}
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Block, error) {
		var b Block
		var expires *time.Time
		err := row.Scan(&b.Kind, &b.Tenant, &b.Value, &b.Action, &expires, &b.Reason, &b.CreatedAt, &b.UpdatedAt)
		if expires != nil {
			b.ExpiresAt = expires.UTC()
		}
		b.CreatedAt, b.UpdatedAt = b.CreatedAt.UTC(), b.UpdatedAt.UTC()
		return b, err
	})
	return items, wrap("select blocks", err)
}

// putBlock stores b, normalized, where before, nil if there is none, was read under the catalogue's lock.
func (tx *txn) putBlock(ctx context.Context, before *Block, b Block) (Block, error) {
	if before != nil && b.same(*before) {
		return *before, nil
	}
	if _, err := tx.exec(ctx, "ForgetBlocks", forgottenAtOnce); err != nil {
		return Block{}, wrap("forget expired blocks", err)
	}
	if before == nil {
		var n int
		if err := tx.queryRow(ctx, "CountBlocks").Scan(&n); err != nil {
			return Block{}, wrap("count blocks", err)
		}
		if n >= maxBlocks {
			return Block{}, errorf(CodeConflict, "there are %d blocks, and at most %d can be in force; block prefixes instead of single addresses",
				n, maxBlocks)
		}
	}
	var expires *time.Time
	if !b.ExpiresAt.IsZero() {
		expires = &b.ExpiresAt
	}
	err := tx.queryRow(ctx, "UpsertBlock", b.Kind, b.Tenant, b.Value, b.Action, expires, b.Reason).Scan(&b.CreatedAt, &b.UpdatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return Block{}, fieldError(CodeInvalidArgument, "expires_at", "must be in the future")
	}
	b.CreatedAt, b.UpdatedAt = b.CreatedAt.UTC(), b.UpdatedAt.UTC()
	tx.changed(kindBlock, b.id())
	return b, wrap("store block "+b.id(), err)
}
