package pg

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// termsCommitMargin is the time within which a change of the catalogue is certainly committed after its instant. An
// entry may be written between this instant and the commit. Catalogue transactions are bounded to seconds.
const termsCommitMargin = time.Minute

var epoch = time.Unix(0, 0).UTC()

// fromDB returns the zero time for the epoch, which the tables store for "no instant yet".
func fromDB(t time.Time) time.Time {
	if t.Equal(epoch) {
		return time.Time{}
	}
	return t.UTC()
}

// toDB returns the epoch for the zero time, because the tables store the epoch for "no instant yet".
func toDB(t time.Time) time.Time {
	if t.IsZero() {
		return epoch
	}
	return t
}

// columnsOf returns keys as parallel arrays for unnest.
func columnsOf(keys []ledger.BalanceKey) (tenants, meters, subjects []string) {
	tenants, meters, subjects = make([]string, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		tenants[i], meters[i], subjects[i] = k.Tenant, k.Meter, k.Subject
	}
	return tenants, meters, subjects
}

// grantColumns returns grant keys as parallel arrays for unnest.
func grantColumns(grants []ledger.GrantKey) (tenants, meters, subjects, ids []string) {
	keys, ids := make([]ledger.BalanceKey, len(grants)), make([]string, len(grants))
	for i, g := range grants {
		keys[i], ids[i] = g.BalanceKey, g.ID
	}
	tenants, meters, subjects = columnsOf(keys)
	return tenants, meters, subjects, ids
}

// chainOf decodes a chain that the function chains has encoded. A value of any other length counts as no chain: the
// next entry begins a new chain, and verify reports it.
func chainOf(stored []byte) (c ledger.Chain) {
	if len(stored) == chainLength {
		c.From, c.Last = int64(binary.BigEndian.Uint64(stored)), int64(binary.BigEndian.Uint64(stored[8:]))
		copy(c.Head[:], stored[16:])
	}
	return c
}

func scanBalances(into map[ledger.BalanceKey]*ledger.Book) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var b ledger.BalanceRow
		var chain pgtype.DriverBytes // not copied, because chainOf copies it
		_, err := pgx.ForEachRow(rows, []any{
			&b.Tenant, &b.Meter, &b.Subject, &b.Seq, &b.Plan, &b.PlanVersion, &b.Allowance, &b.Renews, &b.Start, &b.End,
			&b.Opening, &b.Granted, &b.Refunded, &b.Used, &b.Expired, &b.Adjusted, &b.Held, &b.Overage,
			&b.Owed, &b.Paid, &b.Carried, &b.Amended, &b.Entitled, &b.Short, &b.OverageBefore, &b.CarriedFrom, &b.AllowanceAt, &b.TermsAt,
			&b.ForgivenSeq, &b.HeadID, &b.HeadSource, &b.HeadRemaining, &b.NextEvent, &b.UpdatedAt, &b.RollAt, &chain,
		}, func() error {
			row := b
			row.Chain = chainOf(chain)
			row.Start, row.End = fromDB(row.Start), fromDB(row.End)
			row.NextEvent, row.UpdatedAt, row.RollAt = fromDB(row.NextEvent), fromDB(row.UpdatedAt), fromDB(row.RollAt)
			row.CarriedFrom, row.AllowanceAt, row.TermsAt = fromDB(row.CarriedFrom), fromDB(row.AllowanceAt), fromDB(row.TermsAt)
			if row.AllowanceAt.Before(row.Start) {
				row.Amended = 0 // of an earlier period: a version that knows no amendments opened this one
			}
			row.Adjusted -= row.Amended // the column has both, for such versions
			into[row.BalanceKey] = ledger.NewBook(row)
			return nil
		})
		return err
	}
}

// entryTargets are the scan targets of the entry columns, in the order in which every statement lists them.
func entryTargets(e *ledger.Entry) []any {
	return []any{
		&e.Tenant, &e.OperationID, &e.Line, &e.Seq, &e.Kind, &e.Meter, &e.Subject, &e.PeriodStart, &e.Grant, &e.Source,
		&e.Amount, &e.RemainingAfter, &e.Item, &e.Requested, &e.Fingerprint, &e.CreatedAt, &e.EffectiveAt, &e.OpSubject,
		&e.Detail, &e.Metadata, &e.Actor,
	}
}

// takeEntry returns the entry that was scanned, and clears scanned for the next entry.
func takeEntry(scanned *ledger.Entry) ledger.Entry {
	e := *scanned
	e.CreatedAt, e.PeriodStart, e.EffectiveAt = e.CreatedAt.UTC(), e.PeriodStart.UTC(), fromDB(e.EffectiveAt)
	*scanned = ledger.Entry{}
	return e
}

// CollectEntries reads rows that have the columns of an entry, in the order of every statement that reads entries.
func CollectEntries(rows pgx.Rows) ([]ledger.Entry, error) {
	var row ledger.Entry
	items := []ledger.Entry{}
	_, err := pgx.ForEachRow(rows, entryTargets(&row), func() error {
		items = append(items, takeEntry(&row))
		return nil
	})
	return items, err
}

// scanKeys returns a function that reads rows and appends their balances to a list.
func scanKeys(into *[]ledger.BalanceKey) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var k ledger.BalanceKey
		_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject}, func() error {
			*into = append(*into, k)
			return nil
		})
		return err
	}
}

func scanEntries(into map[ledger.OperationID][]ledger.Entry) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var row ledger.Entry
		_, err := pgx.ForEachRow(rows, entryTargets(&row), func() error {
			e := takeEntry(&row)
			id := ledger.OperationID{Tenant: e.Tenant, Key: e.OperationID}
			into[id] = append(into[id], e)
			return nil
		})
		return err
	}
}

func scanGrants(into map[ledger.BalanceKey][]*ledger.OpenGrant) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var g ledger.GrantRecord
		_, err := pgx.ForEachRow(rows, grantTargets(&g), func() error {
			row := g
			row.EffectiveAt, row.ExpiresAt, row.CreatedAt = g.EffectiveAt.UTC(), g.ExpiresAt.UTC(), g.CreatedAt.UTC()
			k := ledger.BalanceKey{Tenant: row.Tenant, Meter: row.Meter, Subject: row.Subject}
			into[k] = append(into[k], &ledger.OpenGrant{GrantRecord: row})
			return nil
		})
		return err
	}
}

// scanTaken returns a function that reads rows and records in a map which grants exist.
func scanTaken(into map[ledger.GrantKey]bool) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var k ledger.GrantKey
		_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &k.ID}, func() error {
			into[k] = true
			return nil
		})
		return err
	}
}

// grantTargets are the scan targets of the grant columns.
func grantTargets(g *ledger.GrantRecord) []any {
	return []any{
		&g.Tenant, &g.Meter, &g.Subject, &g.ID, &g.Source, &g.Amount, &g.Remaining, &g.Held, &g.Priority, &g.EffectiveAt,
		&g.ExpiresAt, &g.CostBasis, &g.Reason, &g.Status, &g.OperationID, &g.CreatedAt,
	}
}

func scanHoldLines(into map[ledger.BalanceKey][]*ledger.HoldLine) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var h ledger.HoldLine
		_, err := pgx.ForEachRow(rows, []any{
			&h.Tenant, &h.Meter, &h.Subject, &h.HoldID, &h.Line, &h.Item, &h.Grant, &h.Source, &h.Price, &h.Per, &h.Paid,
			&h.Amount, &h.Captured, &h.Returned, &h.ExpiresAt, &h.PaysFor, &h.Deferred, &h.Refunded, &h.Beyond,
		}, func() error {
			row := h
			row.ExpiresAt = row.ExpiresAt.UTC()
			into[row.BalanceKey] = append(into[row.BalanceKey], &row)
			return nil
		})
		return err
	}
}

func scanHolds(into map[ledger.HoldKey]*ledger.HoldRow) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var h ledger.HoldRow
		var items []byte
		_, err := pgx.ForEachRow(rows, []any{&h.Tenant, &h.ID, &h.Subject, &h.Status, &items, &h.CreatedAt, &h.ExpiresAt}, func() error {
			row := h
			row.CreatedAt, row.ExpiresAt, row.Items = h.CreatedAt.UTC(), h.ExpiresAt.UTC(), nil
			if err := json.Unmarshal(items, &row.Items); err != nil {
				return fmt.Errorf("items of hold %s/%s: %w", row.Tenant, row.ID, err)
			}
			into[row.HoldKey] = &row
			return nil
		})
		return err
	}
}

func scanRefunds(into map[ledger.EntryKey]*ledger.RefundSum) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var k ledger.EntryKey
		var month time.Time
		var n, units int64
		_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Key, &month, &k.Line, &n, &units}, func() error {
			k.Month = ledger.MonthOf(month)
			into[k] = &ledger.RefundSum{Amount: n, Units: units}
			return nil
		})
		return err
	}
}

// scanPlaces returns a function that reads (tenant, id, meter, subject) rows, and passes each id with its balance to
// the function `add`.
func scanPlaces(add func(id string, k ledger.BalanceKey)) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var k ledger.BalanceKey
		var id string
		_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &id, &k.Meter, &k.Subject}, func() error {
			add(id, k)
			return nil
		})
		return err
	}
}

// scanAbsent returns a function that reads the rows of WhyAbsent. It records which of the keys name a tenant or a
// meter that does not exist, or a gauge.
func scanAbsent(keys []ledger.BalanceKey, into map[ledger.BalanceKey]ledger.Absence) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var tenant, meter string
		var tenantExists, meterExists, isGauge bool
		reasons := map[[2]string]ledger.Absence{}
		_, err := pgx.ForEachRow(rows, []any{&tenant, &meter, &tenantExists, &meterExists, &isGauge}, func() error {
			switch {
			case !tenantExists:
				reasons[[2]string{tenant, meter}] = ledger.AbsentTenant
			case !meterExists:
				reasons[[2]string{tenant, meter}] = ledger.AbsentMeter
			case isGauge:
				reasons[[2]string{tenant, meter}] = ledger.AbsentGauge
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("look up missing balances: %w", err)
		}
		for _, k := range keys {
			if why, ok := reasons[[2]string{k.Tenant, k.Meter}]; ok {
				into[k] = why
			}
		}
		return nil
	}
}
