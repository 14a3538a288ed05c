package auditlog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

const (
	// reserveShare says which part of all objects only keys without a tenant may create: a tenth.
	reserveShare = 10

	// clockSlack is far more than the difference between the time of an object and the time of its line. Both are times
	// of PostgreSQL's clock, which somebody may set back in between.
	clockSlack = time.Hour
)

// Share bounds the objects of one kind that the keys of one tenant may create, so that a tenant cannot use up what all
// tenants share. The creator of an object counts, not the tenant that the object is about. A person who has signed in
// with rights for one tenant has the same share: the person's objects count together with those of the tenant's keys.
type Share struct {
	Kind  string // kind of the objects, as in Object
	Most  int    // maximum number of existing objects that the keys of one tenant have created
	Whole int    // maximum number of objects of all tenants, of which a tenth is for keys without a tenant; 0: no bound
}

// Made is an object that exists.
type Made struct {
	ID      string
	Subject string // the field `subject` of the object in its line; empty: the id alone identifies the object
	At      time.Time
}

// ScanMade reads a row with the fields of Made.
func ScanMade(row pgx.CollectableRow) (m Made, err error) {
	err = row.Scan(&m.ID, &m.Subject, &m.At)
	return m, err
}

// Check fails with errcode.TooMany if the actor of ctx is bound to a tenant and may not create a further object. The
// argument `all` is the number of objects of all tenants. The function `about` returns the existing objects about a
// tenant; keys of the tenant can create only such objects. Check locks the tenant's share until the transaction ends.
func (s Share) Check(ctx context.Context, tx pgx.Tx, all int, about func(tenant string) ([]Made, error)) error {
	actor := From(ctx)
	tenant := actor.Tenant
	if tenant == "" {
		return nil
	}
	if free := s.Whole - s.Whole/reserveShare; s.Whole > 0 && all >= free {
		return errcode.Errorf(errcode.TooMany, "",
			"there are %d objects of the kind %s; beyond %d, only keys without a tenant create more", all, s.Kind, free)
	}
	if _, err := tx.Exec(ctx, queries["LockShare"], s.Kind+" "+tenant); err != nil {
		return fmt.Errorf("lock the share: %w", err)
	}
	exist, err := about(tenant)
	if err != nil || len(exist) < s.Most { // usually the audit log need not be read
		return err
	}
	ids, subjects, since := make([]string, len(exist)), make([]string, len(exist)), exist[0].At
	for i, m := range exist {
		ids[i], subjects[i] = m.ID, m.Subject
		if m.At.Before(since) {
			since = m.At
		}
	}
	var own int
	row := tx.QueryRow(ctx, queries["CountCreated"], tenant, s.Kind, ids, subjects, since.Add(-clockSlack), actor.KeyID)
	if err := row.Scan(&own); err != nil {
		return fmt.Errorf("count what the tenant's keys have created: %w", err)
	}
	if own >= s.Most {
		return errcode.Errorf(errcode.TooMany, "",
			"keys of the tenant %s have created %d objects of the kind %s, at most %d are allowed; delete some",
			tenant, own, s.Kind, s.Most)
	}
	return nil
}
