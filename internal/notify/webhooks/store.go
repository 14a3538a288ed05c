package webhooks

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// queries are the SQL statements of this package. Loading cannot fail at run time: the files are embedded, and a test
// loads them.
var queries = namedsql.Must(namedsql.Plain, sqlFiles)

// Store stores webhooks in PostgreSQL. It has no goroutines.
type Store struct {
	db    *pgstore.Store
	guard *Guard
	jobs  jobs
}

// May returns an error if the caller has no right to use a webhook: its key is bound to another tenant.
type May func(*Webhook) error

// Create creates a webhook and returns its secret. No other method returns this secret again. It fails with
// errcode.InvalidArgument, with errcode.Conflict if there are already WebhooksMax webhooks, or with errcode.TooMany if
// the keys of the caller's tenant have created as many as they may.
func (s *Store) Create(ctx context.Context, c Change) (w Webhook, secret string, err error) {
	if faults := c.check(s.guard); faults != nil {
		return Webhook{}, "", errcode.Invalid(faults...)
	}
	key := newSecret()
	w = Webhook{ID: newID(), URL: *c.URL, Types: c.Types, Tenant: c.Tenant, Status: Active}
	if c.Status != nil {
		w.Status = *c.Status
	}
	err = s.db.Write(ctx, "create webhook", func(ctx context.Context, tx *pgstore.Transaction) error {
		var count int
		if err := tx.QueryRow(ctx, queries["CountWebhooks"]).Scan(&count); err != nil {
			return fmt.Errorf("count webhooks: %w", err)
		}
		if count >= WebhooksMax {
			return &errcode.Error{Code: errcode.Conflict, Detail: fmt.Sprintf("there are %d webhooks, at most %d are allowed; delete some", count, WebhooksMax)}
		}
		share := auditlog.Share{Kind: "webhook", Most: WebhooksPerTenant, Whole: WebhooksMax}
		err := share.Check(ctx, tx, count, func(tenant string) ([]auditlog.Made, error) {
			rows, _ := tx.Query(ctx, queries["WebhooksOfTenant"], tenant)
			return pgx.CollectRows(rows, auditlog.ScanMade)
		})
		if err != nil {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		w.CreatedAt, w.UpdatedAt = now.UTC(), now.UTC()
		if _, err := tx.Exec(ctx, queries["InsertWebhook"], w.ID, w.URL, w.Types, w.Tenant, w.Status, now); err != nil {
			return fmt.Errorf("insert webhook: %w", err)
		}
		if _, err := tx.Exec(ctx, queries["InsertSecret"], w.ID, key); err != nil {
			return fmt.Errorf("insert secret: %w", err)
		}
		return record(ctx, tx, "webhook.create", nil, &w)
	})
	return w, shown(key), err
}

// Update changes a webhook. If the webhook is paused by the change, its pending deliveries are skipped. It fails with
// errcode.InvalidArgument or errcode.NotFound.
func (s *Store) Update(ctx context.Context, id string, c Change, may May) (w Webhook, err error) {
	if faults := c.check(s.guard); faults != nil {
		return Webhook{}, errcode.Invalid(faults...)
	}
	err = s.db.Write(ctx, "change webhook", func(ctx context.Context, tx *pgstore.Transaction) error {
		before, err := lock(ctx, tx, id, may)
		if err != nil {
			return err
		}
		if w, err = c.apply(ctx, tx, before); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, queries["UpdateWebhook"], id, w.URL, w.Types, w.Status, w.UpdatedAt); err != nil {
			return fmt.Errorf("update webhook: %w", err)
		}
		if w.Status == Paused && before.Status == Active {
			if err := skip(ctx, tx, id, "the webhook was paused"); err != nil {
				return err
			}
		}
		return record(ctx, tx, "webhook.patch", &before, &w)
	})
	return w, err
}

// apply returns w with the changes of c and with the current time as UpdatedAt.
func (c *Change) apply(ctx context.Context, tx *pgstore.Transaction, w Webhook) (Webhook, error) {
	now, err := tx.Now(ctx)
	w.UpdatedAt = now.UTC()
	if c.URL != nil {
		w.URL = *c.URL
	}
	if c.Types != nil {
		w.Types = c.Types
	}
	if c.Status != nil {
		w.Status = *c.Status
	}
	return w, err
}

// Delete deletes a webhook. Its pending deliveries are skipped. It fails with errcode.NotFound.
func (s *Store) Delete(ctx context.Context, id string, may May) error {
	return s.db.Write(ctx, "delete webhook", func(ctx context.Context, tx *pgstore.Transaction) error {
		before, err := lock(ctx, tx, id, may)
		if err != nil {
			return err
		}
		if err := skip(ctx, tx, id, "the webhook was deleted"); err != nil {
			return err
		}
		for _, statement := range []string{"DeleteSecrets", "DeleteWebhook"} {
			if _, err := tx.Exec(ctx, queries[statement], id); err != nil {
				return fmt.Errorf("delete webhook: %w", err)
			}
		}
		return record(ctx, tx, "webhook.delete", &before, nil)
	})
}

// Rotate gives a webhook a new secret. For the given overlap, deliveries are also signed with the earlier secrets. It
// fails with errcode.NotFound.
func (s *Store) Rotate(ctx context.Context, id string, overlap time.Duration, may May) (w Webhook, secret string, err error) {
	key := newSecret()
	err = s.db.Write(ctx, "rotate the secret of a webhook", func(ctx context.Context, tx *pgstore.Transaction) error {
		if w, err = lock(ctx, tx, id, may); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, queries["EndSecrets"], id, overlap.Seconds()); err != nil {
			return fmt.Errorf("end the secrets: %w", err)
		}
		if _, err := tx.Exec(ctx, queries["InsertSecret"], id, key); err != nil {
			return fmt.Errorf("insert secret: %w", err)
		}
		return record(ctx, tx, "webhook.rotate", &w, &w)
	})
	return w, shown(key), err
}

// Get returns a webhook. It fails with errcode.NotFound.
func (s *Store) Get(ctx context.Context, id string, may May) (w Webhook, err error) {
	err = s.db.View(ctx, "read webhook", func(ctx context.Context, tx pgx.Tx) error {
		found, err := collect(ctx, tx, queries["SelectWebhooks"], id, nil, "", 1)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return notFound(id)
		}
		w = found[0]
		return may(&w)
	})
	return w, err
}

// List returns a page of webhooks in the order of their ids.
func (s *Store) List(ctx context.Context, p listing.Query) (list listing.Page[Webhook], err error) {
	after, err := p.After()
	if err != nil {
		return list, err
	}
	err = s.db.View(ctx, "list webhooks", func(ctx context.Context, tx pgx.Tx) error {
		items, err := collect(ctx, tx, queries["SelectWebhooks"], nil, null.IfZero(p.Tenant), after, p.Limit+1)
		list = listing.Cut(items, p, func(w *Webhook) string { return w.ID })
		return err
	})
	return list, err
}

// lock locks the row of a webhook and returns the webhook, unless the function `may` returns an error.
func lock(ctx context.Context, tx pgx.Tx, id string, may May) (Webhook, error) {
	found, err := collect(ctx, tx, queries["LockWebhook"], id)
	if err != nil {
		return Webhook{}, err
	}
	if len(found) == 0 {
		return Webhook{}, notFound(id)
	}
	return found[0], may(&found[0])
}

func collect(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]Webhook, error) {
	rows, _ := tx.Query(ctx, sql, args...)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Webhook, err error) {
		err = row.Scan(&w.ID, &w.URL, &w.Types, &w.Tenant, &w.Status, &w.CreatedAt, &w.UpdatedAt)
		w.CreatedAt, w.UpdatedAt = w.CreatedAt.UTC(), w.UpdatedAt.UTC()
		return w, err
	})
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	return found, nil
}

// skip marks the pending deliveries of a webhook as skipped and removes their jobs.
func skip(ctx context.Context, tx pgx.Tx, id, why string) error {
	_, err := tx.Exec(ctx, queries["SkipDeliveries"], id, why)
	if err == nil {
		_, err = tx.Exec(ctx, queries["DeleteJobs"], id)
	}
	if err != nil {
		return fmt.Errorf("skip deliveries: %w", err)
	}
	return nil
}

// secrets returns the secrets of a webhook that are valid now, the newest first.
func secrets(ctx context.Context, tx interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, id string,
) ([][]byte, error) {
	rows, _ := tx.Query(ctx, queries["Secrets"], id)
	found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	if len(found) == 0 {
		return nil, errors.New("the webhook has no secret")
	}
	return found, nil
}

func record(ctx context.Context, tx pgx.Tx, action string, before, after *Webhook) error {
	return auditlog.Record(ctx, tx, []auditlog.Line{line(auditlog.From(ctx), action, before, after)})
}

func notFound(id string) error {
	return &errcode.Error{Code: errcode.NotFound, Detail: fmt.Sprintf("the webhook %.128q does not exist", id)}
}
