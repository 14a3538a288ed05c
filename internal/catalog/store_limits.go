package catalog

import (
	"context"
	"encoding/json/v2"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// PutLimit creates or replaces a limit. It returns the stored limit, with defaults, and whether it is new.
func (s *Store) PutLimit(ctx context.Context, l Limit) (stored Limit, created bool, err error) {
	if err := validate(&l); err != nil {
		return Limit{}, false, err
	}
	l.normalize()
	err = s.write(ctx, "put limit", alone, func(ctx context.Context, tx *txn) error {
		before, err := tx.limits(ctx, []string{l.Rule}, "", 1)
		if err != nil {
			return err
		}
		created = len(before) == 0
		if stored, err = tx.putLimit(ctx, first(before), l); err != nil || len(tx.writing.Announcements()) == 0 {
			return err
		}
		return tx.requireRules(ctx, "", func(f *RuleFault) string { return f.Field })
	})
	return stored, created, err
}

// Limit returns the limit named rule.
func (s *Store) Limit(ctx context.Context, rule string) (l Limit, err error) {
	err = s.read(ctx, "read limit", func(ctx context.Context, tx *txn) error {
		items, err := tx.limits(ctx, []string{rule}, "", 1)
		l, err = one(items, err, notFound(kindLimit, rule))
		return err
	})
	return l, err
}

// ListLimits returns a page of all limits except the limits of plans.
func (s *Store) ListLimits(ctx context.Context, p listing.Query) (list listing.Page[Limit], err error) {
	after, err := p.After()
	if err != nil {
		return list, err
	}
	err = s.read(ctx, "list limits", func(ctx context.Context, tx *txn) error {
		items, err := tx.limits(ctx, nil, after, p.Limit+1)
		list = listing.Cut(items, p, func(l *Limit) string { return l.Rule })
		return err
	})
	return list, err
}

// DeleteLimit deletes a general limit. It also deletes the limit's overrides, unless a plan has a limit of this name.
// It fails with errcode.Conflict if another limit replaces this limit.
func (s *Store) DeleteLimit(ctx context.Context, rule string) error {
	return s.write(ctx, "delete limit", alone, func(ctx context.Context, tx *txn) error {
		before, err := tx.limits(ctx, []string{rule}, "", 1)
		if err != nil {
			return err
		}
		if len(before) == 0 {
			return notFound(kindLimit, rule)
		}
		if err := tx.deleteLimit(ctx, &before[0]); err != nil {
			return err
		}
		if err := tx.requireNotReplaced(ctx, rule); err != nil {
			return err
		}
		return tx.deleteOrphans(ctx, []string{rule})
	})
}

func (tx *txn) deleteLimit(ctx context.Context, l *Limit) error {
	_, err := tx.exec(ctx, "DeleteLimit", l.Rule)
	tx.changed(ctx, kindLimit, l.Rule, change{action: "delete", tenant: l.Match.Tenant, before: l})
	return wrap("delete", err)
}

// deleteOrphans deletes the overrides of rules that no longer exist. A later rule with the same name must not get
// these overrides.
func (tx *txn) deleteOrphans(ctx context.Context, rules []string) error {
	n, err := tx.dropOrphans(ctx, rules)
	if n > 0 {
		tx.lines[len(tx.lines)-1].Reason = fmt.Sprintf("with %d overrides", n)
	}
	return err
}

// dropOrphans deletes the overrides of those rules that do not exist, and returns their number. A rule that an older
// version of a plan has still exists. So dropOrphans also runs before a rule is made: nothing tells when such a version
// is in force for no tenant any more.
func (tx *txn) dropOrphans(ctx context.Context, rules []string) (int64, error) {
	n, err := tx.exec(ctx, "DeleteOrphans", rules, tx.store.db.Now())
	if n > 0 {
		tx.writing.AnnounceEverything()
	}
	return n, wrap("delete overrides", err)
}

// Reset identifies a bucket of a limit that was reset, that is, filled to its capacity.
type Reset struct {
	Bucket string `json:"-"`
	Rule   string `json:"-"`

	// Tenant, Subject, Route and IP identify the bucket. A field is empty if the limit does not use its dimension.
	Tenant  string `json:"tenant,omitempty"`
	Subject string `json:"subject,omitempty"`
	Route   string `json:"route,omitempty"`
	IP      string `json:"ip,omitempty"`
}

// RecordReset records in the audit log that a bucket is reset. It must succeed before the bucket is reset, because no
// change may be without its line.
func (s *Store) RecordReset(ctx context.Context, r Reset) error {
	return s.write(ctx, "record a reset", pgstore.Options{}, func(ctx context.Context, tx *txn) error {
		tx.lines = append(tx.lines, auditlog.Line{
			Actor: auditlog.From(ctx), Action: "limit.reset", Object: auditlog.Object{Kind: kindLimit, ID: r.Rule, Tenant: r.Tenant}, After: &r,
		})
		return nil
	})
}

// AnnounceReset announces to all instances that a bucket was reset.
func (s *Store) AnnounceReset(ctx context.Context, bucket string) error {
	return s.write(ctx, "announce a reset", pgstore.Options{}, func(_ context.Context, tx *txn) error {
		tx.writing.Announce(kindReset, bucket)
		return nil
	})
}

// limits reads the limits whose names are in rules, or all limits if rules is nil. It omits limits whose names are not
// greater than `after`. It returns the first limits in the order of their names, at most as many as `limit` says.
func (tx *txn) limits(ctx context.Context, rules []string, after string, limit int) ([]Limit, error) {
	return tx.collectLimits(ctx, "SelectLimits", rules, after, limit)
}

// collectLimits reads the limits that a statement selects.
func (tx *txn) collectLimits(ctx context.Context, statement string, args ...any) ([]Limit, error) {
	items, err := pgx.CollectRows(tx.query(ctx, statement, args...), func(row pgx.CollectableRow) (Limit, error) {
		var (
			stored Limit
			l      Limit
			spec   []byte
		)
		if err := row.Scan(&stored.Rule, &spec, &stored.CreatedAt, &stored.UpdatedAt); err != nil {
			return l, err
		}
		if err := json.Unmarshal(spec, &l); err != nil {
			return l, fmt.Errorf("limit %s: %w", stored.Rule, err)
		}
		l.normalize()
		l.Rule, l.CreatedAt, l.UpdatedAt = stored.Rule, stored.CreatedAt.UTC(), stored.UpdatedAt.UTC()
		return l, nil
	})
	return items, wrap("select limits", err)
}

// putLimit stores l, which is normalized. The argument `before` is the stored limit, read under the catalogue's lock.
// It is nil if l is new.
func (tx *txn) putLimit(ctx context.Context, before *Limit, l Limit) (Limit, error) {
	statement := "InsertLimit"
	if before != nil {
		if l.same(*before) {
			return *before, nil
		}
		statement = "UpdateLimit"
	} else if _, err := tx.dropOrphans(ctx, []string{l.Rule}); err != nil {
		return Limit{}, err
	}
	if err := tx.store.checkLimit("", &l); err != nil {
		return Limit{}, err
	}
	if m := l.Match.Meter; m != "" {
		if err := tx.requireMeters(ctx, []reference{{"match.meter", m}}); err != nil {
			return Limit{}, err
		}
	}
	if p := l.Match.Plan; p != "" {
		if err := tx.require(ctx, "MissingPlans", kindPlan, []reference{{"match.plan", p}}); err != nil {
			return Limit{}, err
		}
	}
	spec, err := json.Marshal(&l)
	if err != nil {
		return Limit{}, wrap("encode limit", err)
	}
	err = tx.queryRow(ctx, statement, l.Rule, spec).Scan(&l.CreatedAt, &l.UpdatedAt)
	l.CreatedAt, l.UpdatedAt = l.CreatedAt.UTC(), l.UpdatedAt.UTC()
	tx.changed(ctx, kindLimit, l.Rule, change{action: "put", tenant: l.Match.Tenant, before: orNil(before), after: &l})
	return l, wrap("store limit "+l.Rule, err)
}
