package history

import (
	"context"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// unlessArchived returns an answer about a tenant at an instant, or the error that prevented it. If the entries of
// that instant were archived, it returns errcode.Archived instead of the answer and the error, because both may be
// wrong then. field names the instant in the request.
func unlessArchived[V any](ctx context.Context, r *Reader, tenant, field string, at time.Time, answer V, err error) (V, error) {
	var none V
	if err != nil && errcode.Of(err) != errcode.NotFound {
		return none, err
	}
	oldest, failed := r.ledger.Oldest(ctx, tenant)
	switch {
	case failed != nil:
		return none, failed
	case at.Before(oldest):
		return none, ledger.Archived(field, oldest)
	}
	return answer, err
}
