package answers

import (
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/report/status"
)

// SealSummary returns the seal of a day in the contract's type for lists, which has no proofs.
func SealSummary(i *audit.SealInfo) client.SealSummary {
	return client.SealSummary{Day: i.Day.Format(time.DateOnly), Position: i.Position, Heads: i.Heads, Root: i.Root.String(), SealedAt: i.SealedAt.UTC()}
}

// Status returns the state of the service in the contract's type.
func Status(s *status.Status) client.ServiceStatus {
	out := client.ServiceStatus{
		At: s.At, StartedAt: s.StartedAt,
		Requests: client.StatusRequests{From: s.Requests.From, Answered: s.Requests.Answered, Refused: s.Requests.Refused, Failed: s.Requests.Failed},
		Degraded: Map(s.Faults, func(f *status.Fault) client.StatusFault { return client.StatusFault{Part: f.Part, Reason: f.Reason} }),
	}
	r := s.Records
	if r == nil {
		return out
	}
	out.Refusals = client.StatusRefusals{
		From: r.Refusals.From, To: r.Refusals.To, Total: r.Refusals.Total,
		Minutes: Map(r.Refusals.Minutes, func(m *status.Minute) client.RefusedMinute { return client.RefusedMinute{Minute: m.Minute, N: m.N} }),
		Tenants: Map(r.Refusals.Tenants, func(t *status.Refused) client.RefusedTenant {
			return client.RefusedTenant{Tenant: t.Tenant, N: t.N, Code: t.Code}
		}),
	}
	if v := r.Verification; v != nil {
		out.Verification = client.LastVerification{VerificationID: v.ID, Tenant: v.Tenant, Status: client.LastVerificationStatus(v.Status), StartedAt: v.StartedAt, FinishedAt: TimeOrNull(v.FinishedAt)}
	}
	if l := r.Roll; l != nil {
		out.Roll = client.LastRoll{RollID: l.ID, AsOf: l.AsOf, Status: client.LastRollStatus(l.Status), Total: l.Total, Processed: l.Processed, StartedAt: l.StartedAt, FinishedAt: TimeOrNull(l.FinishedAt)}
	}
	if l := r.Seal; l != nil {
		out.Seal = client.LastSeal{Day: l.Day.Format(time.DateOnly), Position: l.Position, Heads: l.Heads, SealedAt: l.SealedAt}
	}
	if a := r.Archive; a != nil {
		out.Archive = client.LastArchive{Month: a.Month.Format("2006-01"), ArchivedAt: a.ArchivedAt, RemovedAt: TimeOrNull(a.RemovedAt)}
	}
	return out
}
