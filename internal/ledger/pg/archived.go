package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// Oldest returns the oldest instant about which the tenant's data can be queried: earlier months were archived. The
// zero time means that nothing of the tenant was archived. Call it after the read that it concerns: an archive run
// first moves the instant and then removes rows.
func (l *Ledger) Oldest(ctx context.Context, tenant string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var oldest time.Time
	err := l.readers.QueryRow(ctx, l.sql["OldestInstant"], tenant).Scan(&oldest)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, unavailable("read what was archived", err)
	}
	return oldest, nil
}

// OrArchived returns errcode.Archived instead of err if err reports that an operation or a hold does not exist, but
// data of the tenant was archived.
func (l *Ledger) OrArchived(ctx context.Context, tenant string, err error) error {
	switch errcode.Of(err) {
	case errcode.OperationNotFound, errcode.HoldNotFound:
	default:
		return err
	}
	oldest, failed := l.Oldest(context.WithoutCancel(ctx), tenant)
	if failed != nil {
		return failed
	}
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || oldest.IsZero() {
		return err
	}
	archived := ledger.Archived(e.Field(), oldest)
	out := errcode.Errorf(archived.Code, e.Field(), "%s, or it was archived: %s", e.Detail, archived.Detail)
	out.Data = archived.Data
	return out
}
