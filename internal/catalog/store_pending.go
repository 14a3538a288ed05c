package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// advanceBatch is the largest number of tenants whose changes one transaction puts into force. It takes some
// milliseconds for each tenant at most.
const advanceBatch = 100

// AdvanceTenants puts the changes of tenants into force whose instant has come: it writes them into the rows of the
// tenants and emits their events. Requests do not wait for it: see Tenant.advance. Several instances may run it at
// once: a change is put into force by the transaction that holds the lock of its tenant, and by no other.
func (s *Store) AdvanceTenants(ctx context.Context) error {
	for {
		var due []string
		err := s.read(ctx, "look for changes of tenants that are due", func(ctx context.Context, tx *txn) (err error) {
			due, err = pgx.CollectRows(tx.query(ctx, "DueTenants", s.db.Now(), advanceBatch), pgx.RowTo[string])
			return wrap("select due tenants", err)
		})
		if err != nil || len(due) == 0 {
			return err
		}
		tenants := make([]Tenant, len(due))
		for i, id := range due {
			tenants[i].ID = id
		}
		advanced := 0
		err = s.write(ctx, "advance tenants", pgstore.Options{}, func(ctx context.Context, tx *txn) error {
			_, err := tx.lockTenants(ctx, tenants)
			advanced = tx.advanced
			return err
		})
		if err != nil || advanced == 0 || len(due) < advanceBatch {
			return err
		}
	}
}

// readPending reads the pending changes of locked tenants, and puts those into force whose instant has come. So a
// change never decides on terms that are no longer in force.
func (tx *txn) readPending(ctx context.Context, locked map[string]*lockedTenant, waiting []string) error {
	if len(waiting) == 0 {
		return nil
	}
	var id string
	var r pendingRow
	_, err := pgx.ForEachRow(tx.query(ctx, "PendingTerms", waiting), append([]any{&id}, r.into()...), func() error {
		locked[id].Pending = r.pending(locked[id].Features)
		r.overrides, r.features, r.asked = nil, nil, nil
		return nil
	})
	if err != nil {
		return wrap("select terms that wait", err)
	}
	now, err := tx.now(ctx)
	if err != nil {
		return err
	}
	for _, id := range waiting {
		if err := tx.advance(ctx, &locked[id].Tenant, now); err != nil {
			return err
		}
	}
	return nil
}

// advance puts the pending change of a locked tenant into force if its instant has come.
func (tx *txn) advance(ctx context.Context, t *Tenant, now time.Time) error {
	before := *t
	if !t.advance(now) {
		return nil
	}
	_, err := tx.exec(ctx, "AdvanceTenant",
		t.ID, t.Plan, t.Anchor, t.Timezone, orEmpty(t.Overrides), orNone(t.Features), t.Version, t.UpdatedAt)
	if err != nil {
		return wrap("put terms into force of tenant "+t.ID, err)
	}
	if err := tx.extendChain(ctx, agreementOf(t, time.Time{}, false)); err != nil {
		return err
	}
	tx.advanced++
	tx.writing.Announce(kindTenant, t.ID)
	if before.Plan != t.Plan {
		p := before.Pending
		data := events.Change{Plan: t.Plan, PreviousPlan: before.Plan, Apply: p.Apply, Reason: p.Reason}
		tx.events = append(tx.events, events.Event{Type: events.PlanChanged, At: p.From, Tenant: t.ID, Data: data})
	}
	return nil
}

// effect says what a request does to the terms of a tenant.
type effect struct {
	now   bool      // new terms take effect at the instant of the request
	later time.Time // new terms take effect at that instant; zero: they do not wait
	stays bool      // the terms in force stay, whatever the request names
}

// effectOf returns what the change of the tenant `before` into t does to its terms.
func (tx *txn) effectOf(ctx context.Context, before, t *Tenant, when *timing) (effect, error) {
	switch {
	case !when.terms:
		return effect{}, nil
	case when.apply == applyNow:
		if !t.sameTerms(before) || when.renews() {
			return effect{now: true}, nil
		}
		wait, err := tx.termsWait(ctx, before)
		return effect{now: wait}, err
	case before.Pending != nil && !when.patch && before.Pending.same(before.Pending.withTerms(t)):
		return effect{stays: true}, nil // a put of what was agreed before
	case before.Pending != nil:
		return effect{}, changePending(before)
	case t.sameTerms(before) && maps.Equal(t.Features, before.Features) && !when.renews():
		return effect{}, nil
	}
	from, err := tx.waitsUntil(ctx, before, when)
	return effect{now: from.IsZero(), later: from, stays: !from.IsZero()}, err
}

func changePending(t *Tenant) *errcode.Error {
	const detail = "a change of the tenant %q waits until %s; take it back first " +
		"(DELETE /v1/tenants/{tenant}/pending), or send this one with apply now"
	return errcode.Errorf(CodeChangePending, "", detail, t.ID, t.Pending.From.Format(time.RFC3339))
}

// waitsUntil returns the instant at which a change of the tenant `before` takes effect. It is zero if the change has
// nothing to wait for: the plan in force has no interval.
func (tx *txn) waitsUntil(ctx context.Context, before *Tenant, when *timing) (time.Time, error) {
	now, err := tx.now(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if when.apply == applyAt {
		at := period.Micros(when.at)
		if !at.After(now) || at.After(now.Add(MaxAhead)) {
			const must = "must be later than now and at most 400 days ahead: from %s to %s"
			return at, errcode.Errorf(errcode.InvalidArgument, "effective_at", must,
				now.Format(time.RFC3339), now.Add(MaxAhead).Format(time.RFC3339))
		}
		return at, nil
	}
	plans, err := tx.planOf(ctx, before)
	if err != nil || len(plans) == 0 {
		return time.Time{}, err
	}
	waits := plans[0].waitsFor(when.asked.onlyOverrides(before))
	if len(waits) == 0 {
		return time.Time{}, nil
	}
	return tx.latestEnd(ctx, before, waits, now)
}

// latestEnd returns the latest end among the periods of the allowances that are open at the instant now: the stored
// periods, and where there are none those of the schedule.
func (tx *txn) latestEnd(
	ctx context.Context, t *Tenant, waits []*Allowance, now time.Time,
) (latest time.Time, err error) {
	ends := map[string]time.Time{}
	var meter string
	var end time.Time
	rows := tx.query(ctx, "OpenPeriods", t.ID, column(waits, func(a **Allowance) string { return (*a).Meter }), now)
	_, err = pgx.ForEachRow(rows, []any{&meter, &end}, func() error { ends[meter] = end.UTC(); return nil })
	if err != nil {
		return latest, wrap("select open periods", err)
	}
	for _, a := range waits {
		end, open := ends[a.Meter]
		if !open {
			if end, err = t.nominalEnd(a, now); err != nil {
				return latest, fmt.Errorf("period of %s: %w", a.Meter, err)
			}
		}
		if end.After(latest) {
			latest = end
		}
	}
	return latest, nil
}

// insertPending stores the terms of p, which wait.
func (tx *txn) insertPending(ctx context.Context, tenant string, p *Pending) error {
	_, err := tx.exec(ctx, "InsertPending", tenant, p.From, p.Plan, p.Anchor, p.Timezone, orEmpty(p.Overrides),
		p.Prorate, null.IfZero(p.Reason), p.Usage, p.Apply, orNone(p.Features), p.asked)
	return wrap("store terms that wait of tenant "+tenant, err)
}

// replacePending stores the pending change `after` in place of `before`. Both may be nil.
func (tx *txn) replacePending(ctx context.Context, tenant string, before, after *Pending) error {
	if after.same(before) {
		return nil
	}
	if before != nil {
		if _, err := tx.exec(ctx, "DeleteTerms", tenant, before.From); err != nil {
			return wrap("remove terms that wait of tenant "+tenant, err)
		}
	}
	if after == nil {
		return nil
	}
	return tx.insertPending(ctx, tenant, after)
}

// DeletePending takes back the change of a tenant that waits. It fails with errcode.NotFound if no change waits.
func (s *Store) DeletePending(ctx context.Context, id string) error {
	return s.write(ctx, "take back a change", pgstore.Options{}, func(ctx context.Context, tx *txn) error {
		locked, err := tx.lockTenants(ctx, []Tenant{{ID: id}})
		if err != nil {
			return err
		}
		before := locked[id]
		switch {
		case before == nil:
			return notFound(kindTenant, id)
		case before.Pending == nil:
			return errcode.Errorf(errcode.NotFound, "", "tenant %q has no change that waits", id)
		}
		t := before.Tenant
		t.Pending = nil
		if err := tx.storeTenant(ctx, &t); err != nil {
			return err
		}
		if err := tx.replacePending(ctx, id, before.Pending, nil); err != nil {
			return err
		}
		if err := tx.extendChain(ctx, agreementOf(&t, time.Time{}, true)); err != nil {
			return err
		}
		if p := before.Pending; p.Plan != t.Plan {
			tx.events = append(tx.events, events.Event{
				Type: events.PlanChangeCanceled, At: t.UpdatedAt, Tenant: id, Data: p.event(t.Plan),
			})
		}
		tx.changed(ctx, kindTenant, id, change{
			action: "delete_pending", tenant: id, before: audited(&before.Tenant), after: audited(&t),
		})
		return nil
	})
}

// event returns the data of events about p, which waits while the tenant has the given plan.
func (p *Pending) event(plan string) events.Change {
	return events.Change{Plan: p.Plan, PreviousPlan: plan, Apply: p.Apply, Reason: p.Reason, From: &p.From}
}

// auditedTenant is a tenant in the audit log.
type auditedTenant struct {
	*Tenant

	Pending *Pending `json:"pending,omitzero"`
}

func audited(t *Tenant) any { return auditedTenant{Tenant: t, Pending: t.Pending} }

// storedChange is the answer to a patch in the table tenant_changes.
type storedChange struct {
	Before  storedTenant `json:"before"`
	After   storedTenant `json:"after"`
	Apply   string       `json:"apply,omitzero"`
	Prorate bool         `json:"prorate,omitzero"`
	Usage   string       `json:"usage,omitzero"`
}

// storedTenant is a tenant in the table tenant_changes.
type storedTenant struct {
	Tenant    Tenant         `json:"tenant"`
	Pending   *Pending       `json:"pending,omitzero"`
	Version   int64          `json:"version"`
	Versions  TenantVersions `json:"versions"`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
}

func storedOf(t *Tenant, versions TenantVersions) storedTenant {
	return storedTenant{
		Tenant:    *t,
		Pending:   t.Pending,
		Version:   t.Version,
		Versions:  versions,
		CreatedAt: t.CreatedAt,
		UpdatedAt: t.UpdatedAt,
	}
}

func (s *storedTenant) tenant() Tenant {
	t := s.Tenant
	t.Pending, t.Version, t.CreatedAt, t.UpdatedAt = s.Pending, s.Version, s.CreatedAt, s.UpdatedAt
	return t
}

// fingerprint identifies what p asks for. Its key, its precondition and a dry run do not belong to that.
func (p *TenantPatch) fingerprint() ([]byte, error) {
	text, err := json.Marshal(struct {
		*TenantPatch

		Gone []string `json:"gone,omitzero"`
	}{p, p.Removed})
	sum := sha256.Sum256(text)
	return sum[:], err
}

// replay returns the stored change of a locked tenant if p has the key of an earlier request. It fails with
// errcode.IdempotencyKeyReused if that request asked for something else.
func (tx *txn) replay(ctx context.Context, tenant string, p *TenantPatch) (change TenantChange, found bool, err error) {
	if p.Key == "" || p.DryRun {
		return change, false, nil
	}
	mark, err := p.fingerprint()
	if err != nil {
		return change, false, err
	}
	var stored []byte
	var answer storedChange
	err = tx.queryRow(ctx, "StoredChange", tenant, p.Key).Scan(&stored, &answer)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return change, false, nil
	case err != nil:
		return change, false, wrap("look up the key of a change", err)
	case string(stored) != string(mark):
		return change, false, errcode.Errorf(errcode.IdempotencyKeyReused, "Idempotency-Key",
			"was used for another change of the tenant %q", tenant)
	}
	return TenantChange{
		Before: answer.Before.tenant(), BeforeVersions: answer.Before.Versions,
		After: answer.After.tenant(), AfterVersions: answer.After.Versions,
		Apply: answer.Apply, Prorate: answer.Prorate, Usage: answer.Usage,
		Replayed: true,
	}, true, nil
}

// remember stores the answer to p under its key, and forgets those of the tenant that are too old.
func (tx *txn) remember(ctx context.Context, tenant string, p *TenantPatch, c *TenantChange) error {
	if p.Key == "" || p.DryRun {
		return nil
	}
	mark, err := p.fingerprint()
	if err != nil {
		return err
	}
	now, err := tx.now(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.exec(ctx, "ForgetChanges", tenant, now.Add(-ledger.KeyRetention)); err != nil {
		return wrap("forget keys of changes", err)
	}
	answer := storedChange{
		Before:  storedOf(&c.Before, c.BeforeVersions),
		After:   storedOf(&c.After, c.AfterVersions),
		Apply:   c.Apply,
		Prorate: c.Prorate,
		Usage:   c.Usage,
	}
	_, err = tx.exec(ctx, "StoreChange", tenant, p.Key, mark, answer, now)
	return wrap("store the key of a change", err)
}
