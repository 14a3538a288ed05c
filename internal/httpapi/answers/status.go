package answers

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/report/status"
)

// SealSummary returns a sealed day without its proofs.
func SealSummary(i *audit.SealInfo) wire.SealSummary {
	return wire.SealSummary{Day: i.Day.Format(time.DateOnly), Position: i.Position, Heads: i.Heads, Root: i.Root.String(), SealedAt: i.SealedAt.UTC()}
}

// Status returns how the service is.
func Status(s *status.Status) wire.ServiceStatus {
	out := wire.ServiceStatus{
		At: s.At, StartedAt: s.StartedAt,
		Requests: wire.StatusRequests{From: s.Requests.From, Answered: s.Requests.Answered, Refused: s.Requests.Refused, Failed: s.Requests.Failed},
		Degraded: Map(s.Faults, func(f *status.Fault) wire.StatusFault { return wire.StatusFault{Part: f.Part, Reason: f.Reason} }),
	}
	r := s.Records
	if r == nil {
		return out
	}
	out.Refusals = &wire.StatusRefusals{
		From: r.Refusals.From, To: r.Refusals.To, Total: r.Refusals.Total,
		Minutes: Map(r.Refusals.Minutes, func(m *status.Minute) wire.RefusedMinute { return wire.RefusedMinute{Minute: m.Minute, N: m.N} }),
		Tenants: Map(r.Refusals.Tenants, func(t *status.Refused) wire.RefusedTenant {
			return wire.RefusedTenant{Tenant: t.Tenant, N: t.N, Code: t.Code}
		}),
	}
	if v := r.Verification; v != nil {
		out.Verification = &wire.LastVerification{VerificationID: v.ID, Tenant: v.Tenant, Status: wire.LastVerificationStatus(v.Status), StartedAt: v.StartedAt, FinishedAt: timeOrNull(v.FinishedAt)}
	}
	if l := r.Roll; l != nil {
		out.Roll = &wire.LastRoll{RollID: l.ID, AsOf: l.AsOf, Status: wire.LastRollStatus(l.Status), Total: l.Total, Processed: l.Processed, StartedAt: l.StartedAt, FinishedAt: timeOrNull(l.FinishedAt)}
	}
	if l := r.Seal; l != nil {
		out.Seal = &wire.LastSeal{Day: l.Day.Format(time.DateOnly), Position: l.Position, Heads: l.Heads, SealedAt: l.SealedAt}
	}
	if a := r.Archive; a != nil {
		out.Archive = &wire.LastArchive{Month: a.Month.Format("2006-01"), ArchivedAt: a.ArchivedAt, RemovedAt: timeOrNull(a.RemovedAt)}
	}
	return out
}
