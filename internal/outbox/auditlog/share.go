package auditlog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

const (
	// reserveShare is the part of all objects that only keys without a tenant may create: a tenth.
	reserveShare = 10

	// clockSlack is far more than the time of an object and the time of its line differ by, if clocks disagree.
	clockSlack = time.Hour
)

// Share bounds what the keys of one tenant may create, so that a tenant cannot use up what all tenants share. It
// counts by who created an object, not by the tenant that the object is about.
type Share struct {
	Kind  string // kind of the objects, as in Object
	Most  int    // objects that exist and that keys of one tenant have created
	Whole int    // objects of all tenants that may exist, of which a tenth is kept for other keys; 0: no bound
}

// Made is an object that exists.
type Made struct {
	ID      string
	Subject string // of the field `subject` in the line, if the id does not include it
	At      time.Time
}

// ScanMade reads a row with the fields of Made.
func ScanMade(row pgx.CollectableRow) (m Made, err error) {
	err = row.Scan(&m.ID, &m.Subject, &m.At)
	return m, err
}

// Check fails with errcode.TooMany if the actor of ctx is a key of a tenant and may not create a further object. The
// argument `all` counts the objects of all tenants. The function `about` returns the objects that exist and are about
// a tenant. No others can be by the tenant's keys. Check locks the tenant's share until the end of the transaction.
func (s Share) Check(ctx context.Context, tx pgx.Tx, all int, about func(tenant string) ([]Made, error)) error {
	tenant := From(ctx).Tenant
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
	if err != nil || len(exist) < s.Most { // the usual case needs no look into the audit log
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
	row := tx.QueryRow(ctx, queries["CountCreated"], tenant, s.Kind, ids, subjects, since.Add(-clockSlack))
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
