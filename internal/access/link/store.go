package link

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// endedAtOnce bounds the links of all tenants that are deleted because their time has ended, when a link is
	// created. It is larger than one, so that ended links cannot accumulate.
	endedAtOnce = 100

	idPrefix = "p"

	// kind is the kind of a link in the audit log.
	kind = "portal_session"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// ErrNone means that the link does not exist or has ended.
var ErrNone = errors.New("there is no such link")

// Store stores the links in PostgreSQL. It has no goroutines.
type Store struct {
	db      *pgstore.Store
	limit   *access.Strangers
	exists  func(context.Context, string) error
	queries map[string]string
}

// NewStore returns a store that uses the database of db. limit makes the secrets of links, and bounds look-ups of
// links that do not exist. exists returns an error if a tenant does not exist.
func NewStore(db *pgstore.Store, limit *access.Strangers, exists func(context.Context, string) error) *Store {
	return &Store{db: db, limit: limit, exists: exists, queries: namedsql.Must(namedsql.Plain, sqlFiles)}
}

// Create creates a link. No other method returns its secret again. It fails with errcode.InvalidArgument or
// errcode.TenantNotFound, or with errcode.TooMany if the keys of the caller's tenant have created PerTenant links.
func (s *Store) Create(ctx context.Context, n New) (Made, error) {
	if faults := n.check(); faults != nil {
		return Made{}, errcode.Invalid(faults...)
	}
	if err := s.exists(ctx, n.Tenant); err != nil {
		return Made{}, err
	}
	id := idPrefix + strings.ToLower(rand.Text())
	raw := s.limit.NewSecret(use(id), n.Tenant)
	made := Made{URL: n.Base + path(id, base64.RawURLEncoding.EncodeToString(raw[:]))}
	hash := sha256.Sum256(raw[:])
	actor := auditlog.From(ctx)
	err := s.db.Write(ctx, "make a link", func(ctx context.Context, tx *pgstore.Transaction) error {
		if _, err := tx.Exec(ctx, s.queries["DeleteEnded"], endedAtOnce, n.Tenant); err != nil {
			return fmt.Errorf("delete ended links: %w", err)
		}
		share := auditlog.Share{Kind: kind, Most: PerTenant}
		err := share.Check(ctx, tx, 0, func(tenant string) ([]auditlog.Made, error) {
			rows, _ := tx.Query(ctx, s.queries["LinksOfTenant"], tenant)
			return pgx.CollectRows(rows, auditlog.ScanMade)
		})
		if err != nil {
			return err
		}
		lifetime := cmp.Or(n.ExpiresIn, ExpiresDefault).Seconds()
		row := tx.QueryRow(ctx, s.queries["InsertLink"], id, hash[:], n.Tenant, actor.KeyID, n.ReturnURL, lifetime)
		if err := row.Scan(&made.ExpiresAt); err != nil {
			return fmt.Errorf("insert link: %w", err)
		}
		made.ExpiresAt = made.ExpiresAt.UTC()
		if actor.Tenant == "" { // keys of a tenant are refused instead
			if _, err := tx.Exec(ctx, s.queries["DeleteOldest"], n.Tenant, PerTenant); err != nil {
				return fmt.Errorf("delete the oldest links: %w", err)
			}
		}
		return auditlog.Record(ctx, tx, []auditlog.Line{{
			Actor: actor, Action: kind + ".create",
			Object: auditlog.Object{Kind: kind, ID: id, Tenant: n.Tenant},
			After:  map[string]any{"expires_at": made.ExpiresAt, "return_url": n.ReturnURL},
		}})
	})
	return made, err
}

// Open returns the link with this id and secret, which a visitor at an address shows. It fails with ErrNone, or with
// *access.Refusal if too many links, cookies and keys that do not exist came from there.
func (s *Store) Open(ctx context.Context, from netip.Addr, id, secret string) (found *Link, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	formed := err == nil && len(raw) == access.SecretBytes && isID(id)
	made := formed && s.limit.Made(use(id), raw)
	err = s.limit.LookUp(from, path(id, secret), made, ErrNone, func() error {
		if !formed {
			return ErrNone
		}
		found, err = s.find(ctx, id, raw, made)
		return err
	})
	return found, err
}

// use names the use of a link's secret, for its tag.
func use(id string) string { return "link " + id }

// find reads a link. What may be invented is looked up in the room of strangers.
func (s *Store) find(ctx context.Context, id string, secret []byte, made bool) (*Link, error) {
	db := s.db.In(pgstore.Strangers)
	if made {
		db = s.of(secret)
	}
	found := &Link{ID: id}
	var stored []byte
	err := db.Send(ctx, "open a link", func() *pgx.Batch {
		batch := new(pgx.Batch)
		batch.Queue(s.queries["SelectLink"], id).QueryRow(func(row pgx.Row) error {
			return row.Scan(&stored, &found.Tenant, &found.ReturnURL, &found.ExpiresAt)
		})
		return batch
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(secret)
	if subtle.ConstantTimeCompare(hash[:], stored) != 1 {
		return nil, ErrNone
	}
	found.ExpiresAt = found.ExpiresAt.UTC()
	return found, nil
}

// of returns the store for look-ups of the tenant for which a link's secret was made.
func (s *Store) of(secret []byte) *pgstore.Store {
	return s.db.In(pgstore.Reading, "links", access.OwnerOf([access.SecretBytes]byte(secret)))
}

// EndAll ends the links of a tenant. It fails with errcode.TenantNotFound.
func (s *Store) EndAll(ctx context.Context, tenant string) error {
	if err := s.exists(ctx, tenant); err != nil {
		return err
	}
	return s.db.Write(ctx, "end the links of a tenant", func(ctx context.Context, tx *pgstore.Transaction) error {
		tag, err := tx.Exec(ctx, s.queries["DeleteLinks"], tenant)
		if err != nil {
			return fmt.Errorf("delete links: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil
		}
		return auditlog.Record(ctx, tx, []auditlog.Line{{
			Actor: auditlog.From(ctx), Action: kind + ".delete",
			Object: auditlog.Object{Kind: kind, ID: tenant, Tenant: tenant},
			Before: map[string]any{"links": tag.RowsAffected()},
		}})
	})
}

// isID reports whether text has the form of a link's id. Other texts cause no query.
func isID(text string) bool {
	return len(text) == len(idPrefix)+26 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
