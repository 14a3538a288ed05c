package access

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// KeysMax bounds the valid keys. Every instance has all valid keys in memory (400 bytes each) and reads all of
	// them after each change.
	KeysMax = 20_000

	// KeysPerTenant bounds the valid keys that the keys of one tenant have created.
	KeysPerTenant = 500

	// NameMax bounds the name of a key in characters.
	NameMax = 128

	// OverlapMax bounds the time for which old secrets stay valid after a rotation.
	OverlapMax = 7 * 24 * time.Hour
)

// Store stores the keys in PostgreSQL. It has no goroutines.
type Store struct {
	db      *pgstore.Store
	queries map[string]string
}

// NewStore returns a store that uses the database of db.
func NewStore(db *pgstore.Store) *Store {
	return &Store{db: db, queries: namedsql.Must(namedsql.Plain, sqlFiles)}
}

// New describes a key that is to be created.
type New struct {
	Name      string
	Scopes    []string
	Tenant    string    // empty: all tenants
	ExpiresAt time.Time // zero: never
}

// Members returns the members of the request body that creates a key.
func Members() []body.Member[New] {
	return []body.Member[New]{
		body.Required("name", func(d *body.Document, n *New) { n.Name = d.Characters(1, NameMax) }),
		body.Required("scopes", func(d *body.Document, n *New) {
			names := ScopeNames()
			body.ReadList(d, &n.Scopes, 1, len(names), func(d *body.Document, s *string) { *s = d.Word(names...) })
		}),
		body.Optional("tenant", func(d *body.Document, n *New) { n.Tenant = d.Name() }),
		body.Optional("expires_at", func(d *body.Document, n *New) { n.ExpiresAt = d.Instant() }),
	}
}

// Rotation says how long the current secrets stay valid after a rotation.
type Rotation struct{ Overlap time.Duration }

// RotationMembers returns the members of the request body that rotates the secret of a key.
func RotationMembers() []body.Member[Rotation] {
	return []body.Member[Rotation]{
		body.Optional("overlap_seconds", func(d *body.Document, r *Rotation) {
			r.Overlap = time.Duration(d.Integer(0, int64(OverlapMax/time.Second))) * time.Second
		}),
	}
}

// check returns the scopes of n, or an error with all faults of n.
func (n *New) check() (Scope, error) {
	var faults body.Faults
	if !body.IsText(n.Name, 1, NameMax) {
		faults.Add("name", body.MustBeCharacters(1, NameMax))
	}
	scopes, ok := ParseScopes(n.Scopes)
	if !ok {
		faults.Add("scopes", "must have one or more of "+strings.Join(ScopeNames(), ", "))
	}
	if n.Tenant != "" && !bound.Name(n.Tenant) {
		faults.Add("tenant", bound.MustBeName)
	}
	if faults != nil {
		return 0, errcode.Invalid(faults...)
	}
	return scopes, nil
}

// Create creates a key and its secret. No other method returns this secret again. The tenant need not exist yet.
// Create fails with errcode.InvalidArgument, with errcode.Conflict if there are already KeysMax valid keys, or with
// errcode.TooMany if the keys of the caller's tenant have created as many as they may.
func (s *Store) Create(ctx context.Context, n New) (k Key, secret string, err error) {
	scopes, err := n.check()
	if err != nil {
		return Key{}, "", err
	}
	n.ExpiresAt = period.Micros(n.ExpiresAt)
	secret = newSecret()
	k = Key{
		ID: newID(), Name: n.Name, Scopes: scopes, Tenant: n.Tenant, Prefix: shown(secret), ExpiresAt: n.ExpiresAt,
		Status: StatusActive,
	}
	err = s.db.Write(ctx, "create key", func(ctx context.Context, tx *pgstore.Transaction) error {
		var count int
		if err := tx.QueryRow(ctx, s.queries["CountKeys"]).Scan(&count); err != nil {
			return fmt.Errorf("count keys: %w", err)
		}
		if count >= KeysMax {
			return errcode.Errorf(errcode.Conflict, "",
				"%d keys are in force, at most %d are allowed; revoke some", count, KeysMax)
		}
		share := auditlog.Share{Kind: "key", Most: KeysPerTenant, Whole: KeysMax}
		err := share.Check(ctx, tx, count, func(tenant string) ([]auditlog.Made, error) {
			rows, _ := tx.Query(ctx, s.queries["KeysOfTenant"], tenant)
			return pgx.CollectRows(rows, auditlog.ScanMade)
		})
		if err != nil {
			return err
		}
		expires := period.OrNil(k.ExpiresAt)
		row := tx.QueryRow(ctx, s.queries["InsertKey"], k.ID, k.Name, scopes.Names(), k.Tenant, expires)
		err = row.Scan(&k.CreatedAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return errcode.Invalid(body.Fault{Field: "expires_at", Message: "must be in the future"})
		}
		if err != nil {
			return fmt.Errorf("insert key: %w", err)
		}
		k.CreatedAt = k.CreatedAt.UTC()
		if err := s.insertSecret(ctx, tx, k.ID, secret); err != nil {
			return err
		}
		return k.record(ctx, tx, "key.create", nil, &k)
	})
	return k, secret, err
}

// Rotate gives a key a new secret. The earlier secrets stay valid for the given overlap. Rotate fails with
// errcode.NotFound, or with errcode.Conflict if the key is expired or revoked. Directory.Rotate also ends the earlier
// secrets in memory.
func (s *Store) Rotate(
	ctx context.Context, id string, overlap time.Duration, may func(*Key) error,
) (k Key, secret string, err error) {
	secret = newSecret()
	err = s.db.Write(ctx, "rotate key", func(ctx context.Context, tx *pgstore.Transaction) error {
		if k, err = s.lock(ctx, tx, id, may); err != nil {
			return err
		}
		if k.Status != StatusActive {
			return errcode.Errorf(errcode.Conflict, "", "the key is %s; create a new one", k.Status)
		}
		before := k
		if _, err := tx.Exec(ctx, s.queries["EndSecrets"], id, overlap.Seconds()); err != nil {
			return fmt.Errorf("end the secrets: %w", err)
		}
		if err := s.insertSecret(ctx, tx, id, secret); err != nil {
			return err
		}
		k.Prefix = shown(secret)
		return k.record(ctx, tx, "key.rotate", &before, &k)
	})
	return k, secret, err
}

// Revoke ends a key for ever. If the key is already revoked, nothing changes. It fails with errcode.NotFound.
// Directory.Revoke also ends the secrets in memory.
func (s *Store) Revoke(ctx context.Context, id string, may func(*Key) error) error {
	return s.db.Write(ctx, "revoke key", func(ctx context.Context, tx *pgstore.Transaction) error {
		k, err := s.lock(ctx, tx, id, may)
		if err != nil || k.Status == StatusRevoked {
			return err
		}
		after := k
		if err := tx.QueryRow(ctx, s.queries["RevokeKey"], id).Scan(&after.RevokedAt); err != nil {
			return fmt.Errorf("revoke: %w", err)
		}
		after.Status = StatusRevoked
		return k.record(ctx, tx, "key.revoke", &k, &after)
	})
}

// Get returns a key. It fails with errcode.NotFound.
func (s *Store) Get(ctx context.Context, id string) (k Key, err error) {
	err = s.db.View(ctx, "read key", func(ctx context.Context, tx pgx.Tx) error {
		keys, err := s.query(ctx, tx, "SelectKeys", id, nil, "", 1)
		if err == nil && len(keys) == 0 {
			err = notFound(id)
		}
		if err == nil {
			k = keys[0]
		}
		return err
	})
	return k, err
}

// List returns a page of the keys, in the order of their ids.
func (s *Store) List(ctx context.Context, p listing.Query) (list listing.Page[Key], err error) {
	after, err := p.After()
	if err != nil {
		return list, err
	}
	err = s.db.View(ctx, "list keys", func(ctx context.Context, tx pgx.Tx) error {
		keys, err := s.query(ctx, tx, "SelectKeys", nil, null.IfZero(p.Tenant), after, p.Limit+1)
		list = listing.Cut(keys, p, func(k *Key) string { return k.ID })
		return err
	})
	return list, err
}

// lock locks the row of a key and returns the key. It fails if the function `may` returns an error, which means that
// the caller must not change this key.
func (s *Store) lock(ctx context.Context, tx *pgstore.Transaction, id string, may func(*Key) error) (Key, error) {
	keys, err := s.query(ctx, tx, "LockKey", id)
	if err != nil {
		return Key{}, err
	}
	if len(keys) == 0 {
		return Key{}, notFound(id)
	}
	return keys[0], may(&keys[0])
}

func (s *Store) insertSecret(ctx context.Context, tx *pgstore.Transaction, id, secret string) error {
	sum := hashOf(secret)
	if _, err := tx.Exec(ctx, s.queries["InsertSecret"], sum[:], id, shown(secret)); err != nil {
		return fmt.Errorf("insert secret: %w", err)
	}
	return nil
}

func (s *Store) query(ctx context.Context, tx pgx.Tx, statement string, args ...any) ([]Key, error) {
	rows, _ := tx.Query(ctx, s.queries[statement], args...)
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Key, error) {
		var (
			k                      Key
			scopes                 []string
			expires, revoked, used *time.Time
		)
		err := row.Scan(&k.ID, &k.Name, &scopes, &k.Tenant, &k.Prefix, &k.CreatedAt, &expires, &revoked, &used,
			&k.Status)
		k.Scopes, _ = ParseScopes(scopes)
		k.CreatedAt, k.ExpiresAt = k.CreatedAt.UTC(), period.OrZero(expires)
		k.RevokedAt, k.LastUsedAt = period.OrZero(revoked), period.OrZero(used)
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	return keys, nil
}

// secrets returns all valid secrets with their keys. It takes one round trip.
func (s *Store) secrets(ctx context.Context) (all []*known, err error) {
	err = s.db.In(pgstore.Memory).Send(ctx, "read the keys", func() *pgx.Batch {
		batch := new(pgx.Batch)
		batch.Queue(s.queries["SelectSecrets"]).Query(func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, scanKnown)
			return err
		})
		return batch
	})
	return all, err
}

func scanKnown(row pgx.CollectableRow) (*known, error) {
	var (
		k             known
		sum           []byte
		scopes        []string
		ends, expires *time.Time
	)
	err := row.Scan(&sum, &ends, &k.ID, &k.Name, &scopes, &k.Tenant, &expires)
	k.Scopes, _ = ParseScopes(scopes)
	copy(k.hash[:], sum)
	k.ExpiresAt = period.OrZero(expires)
	k.ends = earlier(k.ExpiresAt, period.OrZero(ends))
	return &k, err
}

// earlier returns the earlier of two ends. A zero time means that there is no end.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// noteUse stores, for each of these keys, the time of its latest use.
func (s *Store) noteUse(ctx context.Context, ids []string, at []time.Time) error {
	db := s.db.In(pgstore.Memory)
	return db.Write(ctx, "note the use of keys", func(ctx context.Context, tx *pgstore.Transaction) error {
		if _, err := tx.Exec(ctx, s.queries["NoteUse"], ids, at); err != nil {
			return fmt.Errorf("note use: %w", err)
		}
		return nil
	})
}

// shownKey is a key as the audit log shows it.
type shownKey struct {
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes"`
	Tenant    string     `json:"tenant,omitempty"`
	Prefix    string     `json:"prefix"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Status    Status     `json:"status"`
}

func (k *Key) shown() json.RawMessage {
	out := shownKey{
		Name: k.Name, Scopes: k.Scopes.Names(), Tenant: k.Tenant, Prefix: k.Prefix,
		ExpiresAt: period.OrNil(k.ExpiresAt), Status: k.Status,
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(fmt.Sprintf("access: a key that cannot be encoded: %v", err)) // it has only texts and a time
	}
	return text
}

// record announces a change of a key and inserts its line into the audit log.
func (k *Key) record(ctx context.Context, tx *pgstore.Transaction, action string, before, after *Key) error {
	object := auditlog.Object{Kind: "key", ID: k.ID, Tenant: k.Tenant}
	l := auditlog.Line{Actor: auditlog.From(ctx), Action: action, Object: object}
	if before != nil {
		l.Before = before.shown()
	}
	if after != nil {
		l.After = after.shown()
	}
	tx.Announce(pgstore.KindKey, k.ID)
	return auditlog.Record(ctx, tx, []auditlog.Line{l})
}

func notFound(id string) error {
	return &errcode.Error{Code: errcode.NotFound, Detail: fmt.Sprintf("the key %.128q does not exist", id)}
}

// newID returns an id of 80 random bits.
func newID() string { return "key_" + strings.ToLower(rand.Text()[:16]) }

//go:embed sql/*.sql
var sqlFiles embed.FS
