package override

import (
	"context"
	"embed"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const (
	// RulesMax is the largest number of rules that are overridden for one tenant, or for one subject. All these
	// overrides are in memory together.
	RulesMax = 1000

	// perTenant is the largest number of overrides in force that the keys of one tenant have created.
	perTenant = 1000

	// forgottenAtOnce is the largest number of expired overrides that a write deletes. A write adds one override and
	// can delete more overrides, so expired overrides do not accumulate.
	forgottenAtOnce = 100
)

// Store reads and changes the overrides in PostgreSQL. It has no goroutines.
type Store struct {
	catalog *catalog.Store
	queries map[string]string
	check   func(*catalog.Limit) error
}

// NewStore returns a store that uses the connections of the catalogue's store. check is catalog.StoreConfig.CheckLimit.
func NewStore(c *catalog.Store, check func(*catalog.Limit) error) *Store {
	return &Store{catalog: c, queries: namedsql.Must(c.DB().Target(), sqlFiles), check: check}
}

// Put creates or replaces an override. It returns the stored override and whether it is new. It fails with
// errcode.TenantNotFound if the tenant does not exist, and with errcode.NotFound if the tenant has no such rule. It
// fails with errcode.InvalidArgument if the rate or burst is not valid for the rule. It fails with errcode.Conflict
// if the tenant or the subject already has overrides of RulesMax rules. It fails with errcode.TooMany if the keys of the
// caller's tenant have created perTenant overrides.
func (s *Store) Put(ctx context.Context, o Override) (stored Override, created bool, err error) {
	if faults := o.Check(body.Given{}); faults != nil {
		return Override{}, false, errcode.Invalid(faults...)
	}
	o.ExpiresAt = period.Micros(o.ExpiresAt)
	err = s.catalog.DB().Write(ctx, "put override", func(ctx context.Context, tx *pgstore.Transaction) error {
		if _, err := tx.Exec(ctx, s.queries["LockRule"], o.Rule); err != nil {
			return fmt.Errorf("lock rule: %w", err)
		}
		l, err := s.catalog.LimitOf(ctx, tx, o.Rule, o.Tenant)
		if err != nil {
			return err
		}
		if faults := o.fits(l, s.check); faults != nil {
			return errcode.Invalid(faults...)
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		if !o.ExpiresAt.IsZero() && !o.ExpiresAt.After(now) {
			return errcode.Invalid(body.Fault{Field: "expires_at", Message: mustBeFuture})
		}
		before, err := s.one(ctx, tx, o.Rule, o.Tenant, o.Subject, now)
		if created = before == nil; err != nil {
			return err
		}
		if !created && o.same(before) {
			stored = *before
			return nil
		}
		stored = o
		return s.put(ctx, tx, &stored, before, now)
	})
	return stored, created, err
}

// put stores o in place of the override `before`, which is nil if o is new.
func (s *Store) put(ctx context.Context, tx *pgstore.Transaction, o, before *Override, now time.Time) error {
	if before == nil {
		var n int
		if err := tx.QueryRow(ctx, s.queries["CountOverrides"], o.Tenant, o.Subject, RulesMax+1).Scan(&n); err != nil {
			return fmt.Errorf("count overrides: %w", err)
		}
		if n >= RulesMax {
			return &errcode.Error{Code: errcode.Conflict, Detail: fmt.Sprintf("%d limits are overridden for it already, which is the most", n)}
		}
		share := auditlog.Share{Kind: "override", Most: perTenant}
		err := share.Check(ctx, tx, 0, func(tenant string) ([]auditlog.Made, error) {
			rows, _ := tx.Query(ctx, s.queries["OverridesOfTenant"], tenant, now)
			return pgx.CollectRows(rows, auditlog.ScanMade)
		})
		if err != nil {
			return err
		}
	}
	expires := period.OrNil(o.ExpiresAt)
	row := tx.QueryRow(ctx, s.queries["UpsertOverride"], o.Rule, o.Tenant, o.Subject, o.Rate, o.Burst, expires, now)
	if err := row.Scan(&o.CreatedAt, &o.UpdatedAt); err != nil {
		return fmt.Errorf("store override: %w", err)
	}
	o.CreatedAt, o.UpdatedAt = o.CreatedAt.UTC(), o.UpdatedAt.UTC()
	if _, err := tx.Exec(ctx, s.queries["ForgetOverrides"], forgottenAtOnce, now); err != nil {
		return fmt.Errorf("forget overrides: %w", err)
	}
	return note(ctx, tx, "put", before, o)
}

// Get returns an override that is in force. It fails with errcode.NotFound if no such override is in force.
func (s *Store) Get(ctx context.Context, rule, tenant, subject string) (o Override, err error) {
	err = s.catalog.DB().View(ctx, "read override", func(ctx context.Context, tx pgx.Tx) error {
		found, err := s.one(ctx, tx, rule, tenant, subject, s.catalog.DB().Now())
		if err == nil && found == nil {
			return errNone
		}
		if err == nil {
			o = *found
		}
		return err
	})
	return o, err
}

// Delete deletes an override. It fails with errcode.NotFound if no such override is in force.
func (s *Store) Delete(ctx context.Context, rule, tenant, subject string) error {
	return s.catalog.DB().Write(ctx, "delete override", func(ctx context.Context, tx *pgstore.Transaction) error {
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		before, err := s.one(ctx, tx, rule, tenant, subject, now)
		if err == nil && before == nil {
			return errNone
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, s.queries["DeleteOverride"], rule, tenant, subject); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		return note(ctx, tx, "delete", before, nil)
	})
}

// List returns a page of the overrides of a rule that are in force, by tenant and subject.
func (s *Store) List(ctx context.Context, rule string, p listing.Query) (list listing.Page[Override], err error) {
	tenant, subject, ok := parseCursor(p.Cursor)
	if !ok {
		return list, errcode.Invalid(body.Fault{Field: "cursor", Message: "is an unknown cursor; it must be the next_cursor of the page before"})
	}
	err = s.catalog.DB().View(ctx, "list overrides", func(ctx context.Context, tx pgx.Tx) error {
		items, err := s.collect(ctx, tx, "ListOverrides", rule, tenant, subject, p.Limit+1, s.catalog.DB().Now(), p.Tenant)
		list = listing.Cut(items, p, func(o *Override) string { return bound.Join(o.Tenant, o.Subject) })
		return err
	})
	return list, err
}

// parseCursor returns the tenant and subject after which a page begins.
func parseCursor(cursor string) (tenant, subject string, ok bool) {
	if cursor == "" {
		return "", "", true
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	tenant, subject, cut := bound.Cut(string(text))
	return tenant, subject, err == nil && cut && bound.Name(tenant) && (subject == "" || bound.Name(subject))
}

// note announces the change of an override, and records it in the audit log. The argument `before` is nil for a new
// override; `after` is nil for a deleted override.
func note(ctx context.Context, tx *pgstore.Transaction, action string, before, after *Override) error {
	line := auditlog.Line{Actor: auditlog.From(ctx), Action: "override." + action, Object: auditlog.Object{Kind: "override"}}
	for _, o := range []*Override{before, after} {
		if o != nil {
			line.Object.ID, line.Object.Tenant = o.Rule, o.Tenant
		}
	}
	if before != nil {
		line.Before = before
	}
	if after != nil {
		line.After = after
	}
	tx.Announce(pgstore.KindTenant, line.Object.Tenant) // announced as a change of the tenant
	return auditlog.Record(ctx, tx, []auditlog.Line{line})
}

// one returns an override that is in force at the instant `now`. It returns nil if there is no such override.
func (s *Store) one(ctx context.Context, tx pgx.Tx, rule, tenant, subject string, now time.Time) (*Override, error) {
	items, err := s.collect(ctx, tx, "SelectOverride", rule, tenant, subject, now)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return &items[0], nil
}

func (s *Store) collect(ctx context.Context, tx pgx.Tx, statement string, args ...any) ([]Override, error) {
	rows, _ := tx.Query(ctx, s.queries[statement], args...)
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Override, err error) {
		var expires *time.Time
		err = row.Scan(&o.Rule, &o.Tenant, &o.Subject, &o.Rate, &o.Burst, &expires, &o.CreatedAt, &o.UpdatedAt)
		o.ExpiresAt, o.CreatedAt, o.UpdatedAt = period.OrZero(expires), o.CreatedAt.UTC(), o.UpdatedAt.UTC()
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("select overrides: %w", err)
	}
	return items, nil
}

var errNone = &errcode.Error{Code: errcode.NotFound, Detail: "there is no such override"}

//go:embed sql/*.sql
var sqlFiles embed.FS
