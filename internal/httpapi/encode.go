package httpapi

import (
	"time"

	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// appendProblem appends a problem as JSON. A problem has the member request_id. A failed result of a batch has the
// member replayed instead.
func appendProblem(b []byte, p *problem, requestID string) []byte {
	b = encoding.AppendField(b, `{"status":`, int64(p.kind.status))
	b = encoding.AppendTextField(b, `,"request_id":`, requestID)
	b = appendProblemMembers(b, p)
	return append(b, '}')
}

func appendProblemMembers(b []byte, p *problem) []byte {
	b = encoding.AppendTextField(b, `,"type":`, p.uri)
	b = encoding.AppendTextField(b, `,"title":`, p.kind.title)
	b = encoding.AppendTextField(b, `,"detail":`, p.detail)
	b = encoding.AppendTextField(b, `,"code":`, string(p.code))
	if len(p.fields) > 0 {
		b = encoding.AppendList(append(b, `,"errors":`...), p.fields, appendFault)
	}
	if d := p.denial; d != nil {
		b = append(b, `,"limiting":`...)
		b = encoding.AppendLimiting(b, &d.Limiting)
		b = encoding.AppendField(b, `,"required":`, d.Required)
		b = encoding.AppendField(b, `,"available":`, d.Available)
		b = append(b, `,"reset_at":`...)
		b = encoding.AppendTimeOrNull(b, d.ResetAt)
		if !d.WouldSucceedAt.IsZero() {
			b = encoding.AppendTimeField(b, `,"would_succeed_at":`, d.WouldSucceedAt)
		}
		if len(d.Lacking) > 0 { // denials that old versions stored have no list
			b = encoding.AppendList(append(b, `,"lacking":`...), d.Lacking, appendLack)
		}
	}
	if !p.oldest.IsZero() {
		b = encoding.AppendTimeField(b, `,"oldest":`, p.oldest)
	}
	b = encoding.AppendBlocked(b, p.blocked)
	if len(p.violated) > 0 {
		b = encoding.AppendList(append(b, `,"violated-policies":`...), p.violated, appendRule)
	}
	if p.retryAfter > 0 && len(p.violated) > 0 {
		b = encoding.AppendField(b, `,"retry_after_ms":`, encoding.Ceil(p.retryAfter, time.Millisecond))
	}
	return b
}

func appendLack(b []byte, l *ledger.Lack) []byte {
	b = encoding.AppendTextField(b, `{"meter":`, l.Meter)
	if l.Subject != "" {
		b = encoding.AppendTextField(b, `,"subject":`, l.Subject)
	}
	b = encoding.AppendField(b, `,"required":`, l.Required)
	b = encoding.AppendField(b, `,"available":`, l.Available)
	if !l.ResetAt.IsZero() {
		b = encoding.AppendTimeField(b, `,"reset_at":`, l.ResetAt)
	}
	return append(b, '}')
}

func appendFault(b []byte, f *body.Fault) []byte {
	b = encoding.AppendTextField(b, `{"field":`, f.Field)
	b = encoding.AppendTextField(b, `,"message":`, f.Message)
	return append(b, '}')
}

func appendRule(b []byte, rule *string) []byte { return encoding.AppendText(b, *rule) }

// appendBatchResult appends the result of one debit of a batch: r, or the problem p if r is nil.
func appendBatchResult(b []byte, r *ledger.DebitResult, p *problem, dryRun bool) []byte {
	if r != nil {
		b = encoding.AppendBoolField(b, `{"status":200,"replayed":`, r.Replayed)
		b = append(b, ',')
		b = encoding.AppendDebitMembers(b, r, dryRun)
		return append(b, '}')
	}
	b = encoding.AppendField(b, `{"status":`, int64(p.kind.status))
	b = encoding.AppendBoolField(b, `,"replayed":`, p.replayed())
	b = appendProblemMembers(b, p)
	return append(b, '}')
}
