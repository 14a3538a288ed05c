package answers

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/kit/null"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/report/testclock"
)

// Grant returns a grant of the ledger in the contract's type.
func Grant(g *ledger.GrantRecord) client.Grant {
	return client.Grant{
		GrantID: g.ID, Meter: g.Meter, Subject: g.Subject, Source: client.Source(g.Source), Amount: g.Amount, Remaining: g.Remaining,
		Held: g.Held, Priority: g.Priority, EffectiveAt: g.EffectiveAt.UTC(), ExpiresAt: TimeOrNull(g.ExpiresAt),
		CostBasis: g.CostBasis, Reason: g.Reason, Status: client.GrantStatus(g.Status), OperationID: g.OperationID,
		CreatedAt: g.CreatedAt.UTC(),
	}
}

// GrantAnswer returns the answer to a request that issued a grant, or to its dry run.
func GrantAnswer(r *ledger.GrantResult, dryRun bool) client.GrantAnswer {
	g := Grant(&r.Grant)
	return client.GrantAnswer{
		Tenant: r.Grant.Tenant, GrantID: g.GrantID, Meter: g.Meter, Subject: g.Subject, Source: g.Source, Amount: g.Amount,
		Remaining: g.Remaining, Held: g.Held, Priority: g.Priority, EffectiveAt: g.EffectiveAt, ExpiresAt: g.ExpiresAt,
		CostBasis: g.CostBasis, Reason: g.Reason, Status: g.Status, OperationID: g.OperationID,
		CreatedAt: g.CreatedAt, AsOf: r.AsOf.UTC(), DryRun: dryRun,
		Balance: client.Position{Remaining: r.Position.Remaining, Limit: r.Position.Limit, ResetAt: TimeOrNull(r.Position.ResetAt)},
	}
}

// Roll returns a roll in the contract's type.
func Roll(r *pg.Roll) client.Roll {
	return client.Roll{
		RollID: r.ID, AsOf: r.AsOf.UTC(), Status: client.RollStatus(r.Status), Total: r.Total, Processed: r.Processed, SetAside: r.SetAside, Error: r.Error,
		StartedAt: r.StartedAt.UTC(), FinishedAt: TimeOrNull(r.FinishedAt),
	}
}

// Verification returns a verification in the contract's type.
func Verification(v *verifier.Verification) client.Verification {
	r := &v.Report
	out := client.Verification{
		VerificationID: v.ID, Tenant: v.Tenant, Status: client.VerificationStatus(v.Status), Balances: r.Balances, Entries: r.Entries,
		Grants: r.Grants, Periods: r.Periods, Incremental: r.Incremental, Unchanged: r.Unchanged, Copies: r.Copies,
		CopiesCompared: r.CopiesCompared, StaleCopies: r.StaleCopies, Unread: r.Unread, DifferenceCount: r.Count, Error: v.Error,
		StartedAt: v.StartedAt.UTC(), FinishedAt: TimeOrNull(v.FinishedAt), Totals: []client.VerifiedMeter{},
		UnreadBalances: Map(r.UnreadFirst, func(k *audit.Key) client.UnreadBalance {
			return client.UnreadBalance{Tenant: k.Tenant, Meter: k.Meter, Subject: k.Subject}
		}),
		Differences: Map(r.Differences, func(d *audit.Difference) client.Difference {
			return client.Difference{Tenant: d.Tenant, Meter: d.Meter, Subject: d.Subject, What: d.What, Journal: d.Want, Stored: d.Got}
		}),
	}
	for _, meter := range slices.Sorted(maps.Keys(r.Totals)) {
		t := r.Totals[meter]
		out.Totals = append(out.Totals, client.VerifiedMeter{
			Meter: meter, Issued: t.Issued, Used: t.Used, Refunded: t.Refunded, Expired: t.Expired, Adjusted: t.Adjusted,
			Remaining: t.Remaining, Held: t.Held, Partial: t.Partial,
		})
	}
	return out
}

// VerificationSummary returns a verification in the contract's type for lists, which has no differences.
func VerificationSummary(v *verifier.Summary) client.VerificationSummary {
	return client.VerificationSummary{
		VerificationID: v.ID, Tenant: v.Tenant, Status: client.VerificationSummaryStatus(v.Status), Balances: v.Balances, Entries: v.Entries,
		Incremental: v.Incremental, Unread: v.Unread, DifferenceCount: v.Differences, Error: v.Error, StartedAt: v.StartedAt, FinishedAt: TimeOrNull(v.FinishedAt),
	}
}

// Clock returns the ledger's time, and the seconds by which it is ahead of the real time.
func Clock(s testclock.State) client.TestClock {
	return client.TestClock{Now: s.Now, OffsetSeconds: int64(s.Ahead / time.Second)}
}

// Key returns an API key in the contract's type, without its secret.
func Key(k *access.Key) client.Key {
	return client.Key{
		KeyID: k.ID, Name: k.Name, Scopes: scopes(k.Scopes), Tenant: null.IfZero(k.Tenant), Prefix: k.Prefix, CreatedAt: k.CreatedAt,
		ExpiresAt: TimeOrNull(k.ExpiresAt), Status: client.KeyStatus(k.Status), LastUsedAt: TimeOrNull(k.LastUsedAt),
	}
}

// NewKey returns an API key with its secret, in the contract's type. The key is new, or its secret was just replaced.
// No other answer has the secret.
func NewKey(k *access.Key, secret string) client.CreatedKey {
	return client.CreatedKey{
		KeyID: k.ID, Name: k.Name, Scopes: scopes(k.Scopes), Tenant: null.IfZero(k.Tenant), Prefix: k.Prefix, Secret: secret,
		CreatedAt: k.CreatedAt, ExpiresAt: TimeOrNull(k.ExpiresAt),
	}
}

func scopes(s access.Scope) []client.KeyScope {
	names := s.Names()
	return Map(names, func(name *string) client.KeyScope { return client.KeyScope(*name) })
}

// AuditLine returns a line of the audit log in the contract's type.
func AuditLine(r *auditlog.Recorded) client.AuditLine {
	return client.AuditLine{
		AuditID: strconv.FormatInt(r.ID, 10), At: r.At, Actor: client.AuditActor{KeyID: r.Actor.KeyID, Name: r.Actor.Name}, Action: r.Action,
		Object: client.AuditObject{Kind: r.Object.Kind, ID: r.Object.ID, Tenant: r.Object.Tenant}, Before: r.Before,
		After: r.After, Reason: r.Reason, RequestID: r.Actor.RequestID, IP: r.Actor.IP,
	}
}

// sourceTotal is the text in the column `source` of those rows of a CSV statement that have totals. No grant has this
// source.
const sourceTotal = "total"

// AppendStatementCSV appends a statement as CSV (RFC 4180). The lines of the statement come first. The totals follow:
// the opening balance, its changes, the closing balance, and then the held units, the overage and the overflow.
func AppendStatementCSV(b []byte, s *history.Statement) ([]byte, error) {
	out := bytes.NewBuffer(b)
	w := csv.NewWriter(out)
	w.UseCRLF = true
	rows := [][]string{{"kind", "source", "amount", "entries"}}
	for _, l := range s.Lines {
		rows = append(rows, []string{cell(string(l.Kind)), cell(string(l.Source)), strconv.FormatInt(l.Amount, 10), strconv.FormatInt(l.Entries, 10)})
	}
	for _, t := range []struct {
		kind   string
		amount int64
	}{
		{"opening", s.Opening},
		{"granted", s.Granted},
		{"amended", s.Amended},
		{"refunded", s.Refunded},
		{"used", s.Used},
		{"expired", s.Expired},
		{"adjusted", s.Adjusted},
		{"closing", s.Closing},
		{"held", s.Held},
		{"overage", s.Overage},
		{"overflow", s.Overflow},
	} {
		rows = append(rows, []string{t.kind, sourceTotal, strconv.FormatInt(t.amount, 10), ""})
	}
	if err := w.WriteAll(rows); err != nil {
		return nil, fmt.Errorf("write a statement: %w", err)
	}
	return out.Bytes(), nil
}

// cell returns text for a cell of a CSV file. If a spreadsheet would interpret the text as a formula, the result has
// an apostrophe in front.
func cell(text string) string {
	if text != "" && strings.IndexByte("=+-@\t\r\n", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

// Statement returns the statement of a period in the contract's type.
func Statement(s *history.Statement) client.Statement {
	return client.Statement{
		Tenant: s.Tenant, Meter: s.Meter, Subject: s.Subject, Plan: s.Plan, PlanVersion: s.PlanVersion,
		Period: client.BalancePeriod{Start: TimeOrNull(s.Start), End: TimeOrNull(s.End)}, Closed: s.Closed, Opening: s.Opening, Granted: s.Granted,
		Amended: s.Amended, Refunded: s.Refunded, Used: s.Used, Overflow: s.Overflow, Expired: s.Expired, Adjusted: s.Adjusted, Overage: s.Overage, Held: s.Held,
		Closing: s.Closing, AsOf: s.AsOf.UTC(),
		Lines: Map(s.Lines, func(l *history.StatementLine) client.StatementLine {
			return client.StatementLine{Kind: client.EntryKind(l.Kind), Source: string(l.Source), Amount: l.Amount, Entries: l.Entries}
		}),
	}
}

// StatementFile returns the file name of a CSV statement. It replaces each character of the ids that some file systems do
// not allow by a hyphen.
func StatementFile(s *history.Statement) string {
	name := "statement_" + s.Tenant + "_" + s.Meter
	if s.Subject != "" {
		name += "_" + s.Subject
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/:*|'`$&;!", r) {
			return '-'
		}
		return r
	}, name+"_"+s.Start.UTC().Format("20060102T150405Z")) + ".csv"
}
