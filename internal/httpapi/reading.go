package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/report/denial"
)

const (
	// operationIDMax is the maximum length of an operation id in bytes. An operation that the ledger itself starts
	// has a long id: it contains a meter, a subject and an instant.
	operationIDMax = 1024
	// periodsDefault is the number of periods that listPeriods lists by default: a year of months.
	periodsDefault = 12
)

// listBalances answers with all balances of a tenant.
func (s *Server) listBalances(rc *request) error {
	subject, at := rc.query.name("subject"), rc.query.instant("as_of")
	if err := rc.query.err(); err != nil {
		return err
	}
	var balances []ledger.Balance
	var err error
	if rc.query.values.Has("as_of") {
		balances, err = s.history.BalancesAsOf(rc.reporting(), rc.tenant, subject, at)
	} else {
		balances, err = s.ledger.Balances(rc.ctx, rc.tenant, subject)
	}
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, client.BalanceList{Items: answers.Map(balances, balanceOf)})
}

// getBalance answers with the balance of the meter in the path.
func (s *Server) getBalance(rc *request) error {
	meter := rc.parameter("meter")
	subject, at := rc.query.name("subject"), rc.query.instant("as_of")
	if err := rc.query.err(); err != nil {
		return err
	}
	if rc.query.values.Has("as_of") {
		balance, err := s.history.BalanceAsOf(rc.reporting(), rc.tenant, meter, subject, at)
		if err != nil {
			return err
		}
		return rc.send(http.StatusOK, balanceOf(balance))
	}
	balance, err := s.ledger.Balance(rc.ctx, rc.tenant, meter, subject)
	if err != nil {
		return err
	}
	rc.sendETag(balance.Seq)
	return rc.send(http.StatusOK, balanceOf(balance))
}

func balanceOf(b *ledger.Balance) client.Balance {
	return client.Balance{
		Meter: b.Meter, Subject: b.Subject, Plan: b.Plan, PlanVersion: b.PlanVersion, Limit: b.Limit, Opening: b.Opening,
		Granted: b.Granted, Amended: b.Amended, Refunded: b.Refunded, Used: b.Used, Overflow: b.Overflow, Expired: b.Expired, Adjusted: b.Adjusted, Held: b.Held,
		Carried: b.Carried, Remaining: b.Remaining, Overage: b.Overage, Seq: b.Seq,
		Period: client.BalancePeriod{Start: answers.TimeOrNull(b.PeriodStart), End: answers.TimeOrNull(b.PeriodEnd)},
		Grants: answers.Map(b.Grants, answers.Grant), AsOf: b.AsOf.UTC(),
	}
}

// listEntries answers with a page of journal entries.
func (s *Server) listEntries(rc *request) error {
	kinds := answers.Map(history.Kinds(), func(k *ledger.EntryKind) string { return string(*k) })
	q := history.EntryQuery{
		Tenant: rc.tenant, Meter: rc.query.id("meter"), Subject: rc.query.name("subject"), Kind: ledger.EntryKind(rc.query.word("kind", kinds...)),
		From: rc.query.instant("from"), To: rc.query.instant("to"),
		Order: history.Order(rc.query.word("order", string(history.OldestFirst), string(history.NewestFirst))),
	}
	q.Limit, q.Cursor = rc.query.page()
	if err := rc.query.err(); err != nil {
		return err
	}
	page, err := s.history.Entries(rc.reporting(), q)
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, client.EntryList{
		Items: answers.Map(page.Items, entryOf), NextCursor: nextCursor(page.NextCursor), ArchivedBefore: page.ArchivedBefore,
	})
}

func entryOf(e *ledger.Entry) client.Entry {
	kind, amount := history.Shown(e)
	out := client.Entry{
		OperationID: e.OperationID, Line: e.Line, Seq: e.Seq, Kind: client.EntryKind(kind), Meter: e.Meter, Subject: e.Subject,
		PeriodStart: e.PeriodStart.UTC(), Grant: e.Grant, Source: string(e.Source), Amount: amount,
		RemainingAfter: e.RemainingAfter, Item: e.Item, CreatedAt: e.CreatedAt.UTC(), OperationSubject: e.OpSubject, Actor: e.Actor,
		Metadata: json.RawMessage(e.Metadata), Detail: json.RawMessage(e.Detail),
	}
	if !e.EffectiveAt.IsZero() && !e.EffectiveAt.Equal(e.CreatedAt) {
		out.EffectiveAt = e.EffectiveAt.UTC()
	}
	return out
}

// getOperation answers with the operation in the path. The id in the path is a client's idempotency key, or an id
// that the ledger has created. If several operations have this id, it answers with the newest one, or with the newest
// one at or before the given instant.
func (s *Server) getOperation(rc *request) error {
	id := rc.parameter("operation_id")
	if !body.IsText(id, 1, operationIDMax) {
		return body.Refuse("operation_id", "%s", body.MustBeCharacters(1, operationIDMax))
	}
	at := rc.query.instant("at")
	if err := rc.query.err(); err != nil {
		return err
	}
	op, err := s.history.Operation(rc.ctx, rc.tenant, id, at)
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, client.Operation{
		OperationID: op.ID, Tenant: op.Tenant, Kind: client.EntryKind(op.Kind), CreatedAt: op.CreatedAt.UTC(), Entries: answers.Map(op.Entries, entryOf),
	})
}

// listDenials answers with the refused requests of a tenant.
func (s *Server) listDenials(rc *request) error {
	q := denial.Query{Tenant: rc.tenant, From: rc.query.instant("from"), To: rc.query.instant("to")}
	q.Limit, _ = rc.query.page()
	if err := rc.query.err(); err != nil {
		return err
	}
	list, err := denial.Read(rc.reporting(), s.history, s.ledger.Now(), q)
	return sendObject(rc, http.StatusOK, &list, err, answers.Denials)
}

// listPeriods answers with the present period of a balance, and with the periods that follow it.
func (s *Server) listPeriods(rc *request) error {
	meter, next := rc.query.requiredID("meter"), rc.query.integer("next", 1, history.PeriodsMax, periodsDefault)
	if err := rc.query.err(); err != nil {
		return err
	}
	periods, err := s.history.Periods(rc.ctx, rc.tenant, meter, int(next))
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, client.PeriodList{Items: answers.Map(periods, periodOf)})
}

func periodOf(p *history.PeriodInfo) client.Period {
	out := client.Period{Start: p.Start.UTC(), LocalStart: p.LocalStart, Allowance: p.Allowance}
	out.End = answers.TimeOrNull(p.End)
	out.LocalEnd = null.IfZero(p.LocalEnd)
	return out
}
