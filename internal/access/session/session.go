package session

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// Lifetime is how long a session lasts: a working day. It is never extended, so that even a stolen cookie stops
	// working.
	Lifetime = 12 * time.Hour

	// PerKey bounds the sessions of a key. It is larger than one, because a team may share a key.
	PerKey = 32

	// endedAtOnce bounds the ended sessions that are deleted when a session is created. It is larger than one, so
	// that ended sessions cannot accumulate.
	endedAtOnce = 100

	// use names the use of a session's id, for its tag.
	use = "session"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// ErrNone means that the session does not exist or has ended.
var ErrNone = errors.New("there is no such session")

// Store stores the sessions in PostgreSQL. It has no goroutines.
type Store struct {
	db      *pgstore.Store
	limit   *access.Strangers
	queries map[string]string
}

// Session is an open session.
type Session struct {
	ID        string // the cookie's value
	KeyID     string
	Secret    string // secret of the key; the caller must authenticate it
	ExpiresAt time.Time
}

// NewStore returns a store that uses the database of db. limit makes the ids of sessions, and bounds look-ups of
// sessions that do not exist.
func NewStore(db *pgstore.Store, limit *access.Strangers) *Store {
	return &Store{db: db, limit: limit, queries: namedsql.Must(namedsql.Plain, sqlFiles)}
}

// Create creates a session for a key, which may be bound to a tenant. The caller must have authenticated the secret.
func (s *Store) Create(ctx context.Context, keyID, tenant, secret string) (*Session, error) {
	owner := "key " + keyID
	if tenant != "" {
		owner = "tenant " + tenant // can make many keys
	}
	raw := s.limit.NewSecret(use, owner)
	made := &Session{ID: base64.RawURLEncoding.EncodeToString(raw[:]), KeyID: keyID, Secret: secret}
	name, aead, err := derive(raw[:])
	if err != nil {
		return nil, err
	}
	sealed := aead.Seal(nil, nil, []byte(secret), []byte(keyID))
	err = s.of(raw[:]).Write(ctx, "make a session", func(ctx context.Context, tx *pgstore.Transaction) error {
		row := tx.QueryRow(ctx, s.queries["InsertSession"], name, keyID, sealed, Lifetime.Seconds())
		if err := row.Scan(&made.ExpiresAt); err != nil {
			return fmt.Errorf("insert session: %w", err)
		}
		if _, err := tx.Exec(ctx, s.queries["DeleteEnded"], endedAtOnce); err != nil {
			return fmt.Errorf("delete ended sessions: %w", err)
		}
		if _, err := tx.Exec(ctx, s.queries["DeleteOldest"], keyID, PerKey); err != nil {
			return fmt.Errorf("delete the oldest sessions: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	made.ExpiresAt = made.ExpiresAt.UTC()
	return made, nil
}

// of returns the store for work of the owner of a session's id.
func (s *Store) of(raw []byte) *pgstore.Store {
	return s.db.In(pgstore.Administration, "sessions", access.OwnerOf([access.SecretBytes]byte(raw)))
}

// Open returns the session with this id, which a visitor at an address shows. It fails with ErrNone, or with
// *access.Refusal if too many links, cookies and keys that do not exist came from there.
func (s *Store) Open(ctx context.Context, from netip.Addr, id string) (found *Session, err error) {
	raw := ofID(id)
	made := s.limit.Made(use, raw)
	err = s.limit.LookUp(from, id, made, ErrNone, func() error {
		if raw == nil {
			return ErrNone
		}
		found, err = s.find(ctx, id, raw, made)
		return err
	})
	return found, err
}

// find reads a session. What may be invented is looked up in the room of strangers.
func (s *Store) find(ctx context.Context, id string, raw []byte, made bool) (*Session, error) {
	name, aead, err := derive(raw)
	if err != nil {
		return nil, err
	}
	db := s.db.In(pgstore.Strangers)
	if made {
		db = s.of(raw)
	}
	found := &Session{ID: id}
	var sealed []byte
	err = db.Send(ctx, "open a session", func() *pgx.Batch {
		batch := new(pgx.Batch)
		batch.Queue(s.queries["SelectSession"], name).QueryRow(func(row pgx.Row) error {
			return row.Scan(&found.KeyID, &sealed, &found.ExpiresAt)
		})
		return batch
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	secret, err := aead.Open(nil, nil, sealed, []byte(found.KeyID))
	if err != nil {
		return nil, ErrNone // the row was changed by hand
	}
	found.Secret, found.ExpiresAt = string(secret), found.ExpiresAt.UTC()
	return found, nil
}

// End ends a session. It returns no error if the session does not exist.
func (s *Store) End(ctx context.Context, id string) error {
	raw := ofID(id)
	if raw == nil {
		return nil // a malformed id has no session
	}
	name, _, err := derive(raw)
	if err != nil {
		return err
	}
	return s.of(raw).Write(ctx, "end a session", func(ctx context.Context, tx *pgstore.Transaction) error {
		_, err := tx.Exec(ctx, s.queries["DeleteSession"], name)
		return err
	})
}

// Token returns the token that every form of the session contains.
func (s *Session) Token() string {
	raw, err := base64.RawURLEncoding.DecodeString(s.ID)
	if err != nil {
		return ""
	}
	token, err := hkdf.Key(sha256.New, raw, nil, "quotasvc console: token of forms", sha256.Size)
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(token)
}

// IsToken reports whether given is the token of the session.
func (s *Session) IsToken(given string) bool {
	want := s.Token()
	return want != "" && subtle.ConstantTimeCompare([]byte(want), []byte(given)) == 1
}

// ofID decodes the value of a cookie. It returns nil if the value is not an id.
func ofID(id string) []byte {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(raw) != access.SecretBytes {
		return nil
	}
	return raw
}

// derive returns the name of the row that belongs to an id, and the cipher that encrypts the session's secret.
func derive(id []byte) (name []byte, aead cipher.AEAD, err error) {
	name, err = hkdf.Key(sha256.New, id, nil, "quotasvc console: name of a session", sha256.Size)
	if err != nil {
		return nil, nil, fmt.Errorf("derive a name: %w", err)
	}
	key, err := hkdf.Key(sha256.New, id, nil, "quotasvc console: seal of a session", 32)
	if err != nil {
		return nil, nil, fmt.Errorf("derive a key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a cipher: %w", err)
	}
	aead, err = cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, nil, fmt.Errorf("make a seal: %w", err)
	}
	return name, aead, nil
}
