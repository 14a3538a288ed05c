package history

import (
	"context"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// OperationRecord is one operation with all its entries.
type OperationRecord struct {
	ID, Tenant string
	Kind       ledger.EntryKind // kind of the first entry that says what the operation did, as reports show it
	CreatedAt  time.Time
	Entries    []ledger.Entry
}

// Operation looks up an operation by its id: the Idempotency-Key of the request, or the id of an operation that the
// ledger made by itself. If several operations have this id, it returns the newest. If the argument `at` is not zero,
// it returns the newest at or before that instant.
func (r *Reader) Operation(ctx context.Context, tenant, id string, at time.Time) (*OperationRecord, error) {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", tenant), ledger.ValidateInstant("at", at)); e != nil {
		return nil, e
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := r.ledger.MustExist(ctx, tenant); err != nil {
		return nil, err
	}
	if len(id) > 1024 || !bound.Storable(id) {
		return nil, errcode.Errorf(errcode.OperationNotFound, "operation_id", "no such operation of tenant %q", tenant)
	}
	rows, _ := r.ledger.Readers().Query(ctx, r.sql["EntriesOfOperation"], tenant, id)
	entries, err := pg.CollectEntries(rows)
	if err != nil {
		return nil, unavailable("read operation", err)
	}
	named := ledger.OperationRef{OperationID: ledger.OperationID{Tenant: tenant, Key: id}, At: at}
	if entries = named.Among(entries); len(entries) == 0 {
		return nil, r.ledger.OrArchived(ctx, tenant, named.NotFound())
	}
	kind := entries[0].Kind
	isCapture := func(e ledger.Entry) bool { return e.Kind == ledger.EntryCapture }
	if kind == ledger.EntryHold && slices.ContainsFunc(entries, isCapture) {
		kind = ledger.EntryCapture // a capture of more than was held begins with a reservation
	}
	return &OperationRecord{
		ID: id, Tenant: tenant, Kind: ShownKind(kind), CreatedAt: entries[0].CreatedAt, Entries: entries,
	}, nil
}
