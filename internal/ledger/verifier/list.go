package verifier

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Summary is a verification without its differences. While it runs, its numbers are preliminary.
type Summary struct {
	ID                        string
	Tenant                    string // empty: all
	Status                    VerificationStatus
	Balances, Entries, Unread int64
	Differences               int64
	Incremental               bool // only entries since the last clean verification were read
	Error                     string
	StartedAt                 time.Time
	FinishedAt                time.Time // zero while running
}

// Query selects verifications.
type Query struct {
	Tenant string // only of this tenant; empty: all verifications
	Limit  int    // 1 to 500
	Cursor string // empty for the first page, then the cursor that Verifications returned with the page before
}

// idMax is the maximum length of a verification's id in a cursor.
const idMax = 128

// Verifications returns a page of the requested verifications, the newest first, and the cursor of the next page. The
// cursor is empty on the last page.
func (v *Verifier) Verifications(ctx context.Context, q Query) ([]Summary, string, error) {
	at, id, err := afterCursor(q.Cursor)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	name, args := "VerificationsPage", []any{at, id, q.Limit + 1}
	if q.Tenant != "" {
		name, args = "VerificationsOfTenant", append(args, q.Tenant)
	}
	rows, _ := v.pool.Query(ctx, v.sql[name], args...)
	list, err := pgx.CollectRows(rows, scanSummary)
	if err != nil {
		return nil, "", unavailable("list verifications", err)
	}
	if len(list) <= q.Limit {
		return list, "", nil
	}
	list = list[:q.Limit]
	last := list[q.Limit-1]
	return list, base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", last.StartedAt.UnixMicro(), last.ID)), nil
}

func scanSummary(row pgx.CollectableRow) (Summary, error) {
	var s Summary
	var finished *time.Time
	var abandoned bool
	err := row.Scan(&s.ID, &s.Tenant, &s.Status, &s.Balances, &s.Entries, &s.Unread, &s.Differences, &s.Incremental, &s.Error, &s.StartedAt, &finished, &abandoned)
	if abandoned {
		s.Status = VerificationAbandoned
	}
	s.StartedAt = s.StartedAt.UTC()
	s.FinishedAt = period.OrZero(finished)
	return s, err
}

// afterCursor returns the position at which a page begins: after the verification with this start and id.
func afterCursor(cursor string) (at time.Time, id string, err error) {
	if cursor == "" {
		return time.UnixMicro(1 << 57), "", nil // later than any verification
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		var micros int64
		text, id, _ := strings.Cut(string(raw), " ")
		if micros, err = strconv.ParseInt(text, 10, 64); err == nil && micros >= 0 && micros <= 1<<57 && bound.ASCII(id, '!', 1, idMax) {
			return time.UnixMicro(micros), id, nil
		}
	}
	return time.Time{}, "", errcode.Errorf(errcode.InvalidArgument, "cursor", "is an unknown cursor; it must be the next_cursor of the page before")
}
