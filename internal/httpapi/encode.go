package httpapi

import (
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// appendProblem appends a problem as JSON. In contrast to a failed result of a batch, it has a request_id and no
// replayed.
func appendProblem(b []byte, p *problem, requestID string) []byte {
	b = append(b, `{"status":`...)
	b = strconv.AppendInt(b, int64(p.kind.status), 10)
	b = append(b, `,"request_id":`...)
	b = encoding.AppendText(b, requestID)
	b = appendProblemMembers(b, p)
	return append(b, '}')
}

func appendProblemMembers(b []byte, p *problem) []byte {
	b = append(b, `,"type":`...)
	b = encoding.AppendText(b, p.uri)
	b = append(b, `,"title":`...)
	b = encoding.AppendText(b, p.kind.title)
	b = append(b, `,"detail":`...)
	b = encoding.AppendText(b, p.detail)
	b = append(b, `,"code":`...)
	b = encoding.AppendText(b, string(p.code))
	if len(p.fields) > 0 {
		b = append(b, `,"errors":[`...)
		for i, f := range p.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"field":`...)
			b = encoding.AppendText(b, f.Field)
			b = append(b, `,"message":`...)
			b = encoding.AppendText(b, f.Message)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if d := p.denial; d != nil {
		b = append(b, `,"limiting":`...)
		b = encoding.AppendLimiting(b, &d.Limiting)
		b = encoding.AppendField(b, `,"required":`, d.Required)
		b = encoding.AppendField(b, `,"available":`, d.Available)
		b = append(b, `,"reset_at":`...)
		b = encoding.AppendTimeOrNull(b, d.ResetAt)
		if !d.WouldSucceedAt.IsZero() {
			b = append(b, `,"would_succeed_at":`...)
			b = encoding.AppendTime(b, d.WouldSucceedAt)
		}
	}
	if !p.oldest.IsZero() {
		b = append(b, `,"oldest":`...)
		b = encoding.AppendTime(b, p.oldest)
	}
	b = encoding.AppendBlocked(b, p.blocked)
	if len(p.violated) > 0 {
		b = append(b, `,"violated-policies":[`...)
		for i, rule := range p.violated {
			if i > 0 {
				b = append(b, ',')
			}
			b = encoding.AppendText(b, rule)
		}
		b = append(b, ']')
	}
	if p.retryAfter > 0 && len(p.violated) > 0 {
		b = encoding.AppendField(b, `,"retry_after_ms":`, encoding.Ceil(p.retryAfter, time.Millisecond))
	}
	return b
}

// appendBatchResult appends the result of one debit of a batch: r, or the problem p if r is nil.
func appendBatchResult(b []byte, r *ledger.DebitResult, p *problem, dryRun bool) []byte {
	if r != nil {
		b = append(b, `{"status":200,"replayed":`...)
		b = strconv.AppendBool(b, r.Replayed)
		b = append(b, ',')
		b = encoding.AppendDebitMembers(b, r, dryRun)
		return append(b, '}')
	}
	b = append(b, `{"status":`...)
	b = strconv.AppendInt(b, int64(p.kind.status), 10)
	b = append(b, `,"replayed":`...)
	b = strconv.AppendBool(b, p.replayed())
	b = appendProblemMembers(b, p)
	return append(b, '}')
}
