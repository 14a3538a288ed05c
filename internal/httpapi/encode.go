package httpapi

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// The answers of the spending endpoints and problems are encoded by hand. They are most of the traffic, and this way costs
// no allocation. A test compares each with the JSON of its generated type. All other answers are marshalled.

// appendText appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD; only names that clients sent can have such
// bytes.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := jsontext.AppendQuote(b, s)
			return quoted
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendTime appends t in UTC. The ledger and package period bound all times, so the year has four digits.
func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

func appendTimeOrNull(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return appendTime(b, t)
}

func appendField(b []byte, name string, n int64) []byte {
	b = append(b, name...)
	return strconv.AppendInt(b, n, 10)
}

func appendDebitAnswer(b []byte, r *ledger.DebitResult, dryRun bool) []byte {
	b = append(b, '{')
	b = appendDebitMembers(b, r, dryRun)
	return append(b, '}')
}

// appendConsumeAnswer appends a DebitAnswer with the limits that were charged.
func appendConsumeAnswer(b []byte, r *ledger.DebitResult, limits []gate.LimitVerdict, dryRun bool) []byte {
	b = append(b, '{')
	b = appendDebitMembers(b, r, dryRun)
	if len(limits) > 0 && !r.Replayed { // a replay charged its limits the first time
		b = append(b, `,"limits":`...)
		b = appendVerdicts(b, limits)
	}
	return append(b, '}')
}

// appendDebitMembers appends the members of a DebitAnswer without braces. Batch results have the same members.
func appendDebitMembers(b []byte, r *ledger.DebitResult, dryRun bool) []byte {
	b = append(b, `"operation_id":`...)
	b = appendText(b, r.OperationID)
	b = append(b, `,"tenant":`...)
	b = appendText(b, r.Tenant)
	b = append(b, `,"items":[`...)
	for i := range r.Items {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendDebitedItem(b, &r.Items[i])
	}
	b = append(b, `],"as_of":`...)
	b = appendTime(b, r.AsOf)
	if dryRun {
		b = append(b, `,"dry_run":true`...)
	}
	return b
}

func appendDebitedItem(b []byte, it *ledger.ItemResult) []byte {
	b = append(b, `{"meter":`...)
	b = appendText(b, it.Meter)
	b = appendField(b, `,"requested":`, it.Requested)
	b = appendField(b, `,"charged":`, it.Charged)
	b = appendField(b, `,"shortfall":`, it.Shortfall)
	b = append(b, `,"draws":[`...)
	for i := range it.Draws {
		if i > 0 {
			b = append(b, ',')
		}
		d := &it.Draws[i]
		b = append(b, `{"grant":`...)
		b = appendText(b, d.Grant)
		b = append(b, `,"source":`...)
		b = appendText(b, string(d.Source))
		b = append(b, `,"meter":`...)
		b = appendText(b, d.Meter)
		b = appendField(b, `,"amount":`, d.Amount)
		b = append(b, '}')
	}
	b = appendField(b, `],"remaining":`, it.Remaining)
	return append(b, '}')
}

func appendCheckAnswer(b []byte, c *gate.Check) []byte {
	b = append(b, `{"allowed":`...)
	b = strconv.AppendBool(b, c.Allowed)
	if c.Code != "" {
		b = append(b, `,"code":`...)
		b = appendText(b, string(c.Code))
	}
	if c.Limiting != nil {
		b = append(b, `,"limiting":`...)
		b = appendLimiting(b, c.Limiting)
	}
	b = appendBlocked(b, c.Blocked)
	b = append(b, `,"items":[`...)
	for i := range c.Items {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCheckedItem(b, &c.Items[i])
	}
	b = append(b, `],"limits":`...)
	b = appendVerdicts(b, c.Limits)
	b = append(b, `,"source":`...)
	b = appendText(b, string(c.Source))
	b = append(b, `,"as_of":`...)
	b = appendTime(b, c.AsOf)
	if c.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	return append(b, '}')
}

func appendCheckedItem(b []byte, it *gate.CheckItem) []byte {
	b = append(b, `{"meter":`...)
	b = appendText(b, it.Meter)
	b = appendField(b, `,"required":`, it.Required)
	b = appendField(b, `,"remaining":`, it.Remaining)
	b = appendField(b, `,"limit":`, it.Limit)
	b = appendField(b, `,"max_allowed_now":`, it.MaxAllowedNow)
	if !it.WouldSucceedAt.IsZero() {
		b = append(b, `,"would_succeed_at":`...)
		b = appendTime(b, it.WouldSucceedAt)
	}
	if it.Code != "" {
		b = append(b, `,"code":`...)
		b = appendText(b, string(it.Code))
	}
	return append(b, '}')
}

func appendVerdicts(b []byte, verdicts []gate.LimitVerdict) []byte {
	b = append(b, '[')
	for i := range verdicts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendVerdict(b, &verdicts[i])
	}
	return append(b, ']')
}

func appendVerdict(b []byte, v *gate.LimitVerdict) []byte {
	b = append(b, `{"rule":`...)
	b = appendText(b, v.Rule)
	b = append(b, `,"kind":`...)
	b = appendText(b, v.Kind)
	if v.Replaces != "" {
		b = append(b, `,"replaces":`...)
		b = appendText(b, v.Replaces)
	}
	b = append(b, `,"allowed":`...)
	b = strconv.AppendBool(b, v.Allowed)
	b = appendField(b, `,"remaining":`, v.Remaining)
	b = appendField(b, `,"limit":`, v.Limit)
	if v.Never {
		b = append(b, `,"retry_after_ms":null`...)
	} else {
		b = appendField(b, `,"retry_after_ms":`, ceil(v.RetryAfter, time.Millisecond))
	}
	if v.Delay > 0 {
		b = appendField(b, `,"delay_ms":`, ceil(v.Delay, time.Millisecond))
	}
	if v.Banned > 0 {
		b = appendField(b, `,"banned_ms":`, ceil(v.Banned, time.Millisecond))
	}
	if v.Late {
		b = appendField(b, `,"charged":`, v.Charged)
	}
	b = append(b, `,"shadow":`...)
	b = strconv.AppendBool(b, v.Shadow)
	if v.Shadow {
		b = append(b, `,"would_deny":`...)
		b = strconv.AppendBool(b, !v.Allowed)
	}
	if v.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	return append(b, '}')
}

func appendChargeAnswer(b []byte, c *gate.Charged, dryRun bool) []byte {
	b = append(b, `{"allowed":true,"limits":`...)
	b = appendVerdicts(b, c.Limits)
	if c.ID != "" {
		b = append(b, `,"charge_id":`...)
		b = appendText(b, c.ID)
	}
	if dryRun {
		b = append(b, `,"dry_run":true`...)
	}
	return append(b, '}')
}

func appendChargeRefundAnswer(b []byte, r *gate.ChargeRefund) []byte {
	b = append(b, `{"refunded":`...)
	b = strconv.AppendBool(b, r.Refunded)
	b = append(b, `,"limits":`...)
	b = appendVerdicts(b, r.Limits)
	return append(b, '}')
}

func appendBlocked(b []byte, blocked *gate.Blocked) []byte {
	if blocked == nil {
		return b
	}
	b = append(b, `,"blocked":{"kind":`...)
	b = appendText(b, blocked.Kind)
	b = append(b, `,"value":`...)
	b = appendText(b, blocked.Value)
	if !blocked.ExpiresAt.IsZero() {
		b = append(b, `,"expires_at":`...)
		b = appendTime(b, blocked.ExpiresAt)
	}
	if blocked.Reason != "" {
		b = append(b, `,"reason":`...)
		b = appendText(b, blocked.Reason)
	}
	return append(b, '}')
}

func appendLimiting(b []byte, l *ledger.Limiting) []byte {
	b = append(b, `{"kind":`...)
	b = appendText(b, l.Kind)
	b = append(b, `,"meter":`...)
	b = appendText(b, l.Meter)
	b = append(b, `,"subject":`...)
	b = appendText(b, l.Subject)
	b = append(b, `,"level":`...)
	b = appendText(b, l.Level)
	return append(b, '}')
}

// appendProblem appends a problem document. A batch result has no request_id, and has replayed.
func appendProblem(b []byte, p *problem, requestID string) []byte {
	b = append(b, `{"status":`...)
	b = strconv.AppendInt(b, int64(p.kind.status), 10)
	b = append(b, `,"request_id":`...)
	b = appendText(b, requestID)
	b = appendProblemMembers(b, p)
	return append(b, '}')
}

func appendProblemMembers(b []byte, p *problem) []byte {
	b = append(b, `,"type":`...)
	b = appendText(b, p.uri)
	b = append(b, `,"title":`...)
	b = appendText(b, p.kind.title)
	b = append(b, `,"detail":`...)
	b = appendText(b, p.detail)
	b = append(b, `,"code":`...)
	b = appendText(b, string(p.code))
	if len(p.fields) > 0 {
		b = append(b, `,"errors":[`...)
		for i, f := range p.fields {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"field":`...)
			b = appendText(b, f.Field)
			b = append(b, `,"message":`...)
			b = appendText(b, f.Message)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if d := p.denial; d != nil {
		b = append(b, `,"limiting":`...)
		b = appendLimiting(b, &d.Limiting)
		b = appendField(b, `,"required":`, d.Required)
		b = appendField(b, `,"available":`, d.Available)
		b = append(b, `,"reset_at":`...)
		b = appendTimeOrNull(b, d.ResetAt)
		if !d.WouldSucceedAt.IsZero() {
			b = append(b, `,"would_succeed_at":`...)
			b = appendTime(b, d.WouldSucceedAt)
		}
	}
	if !p.oldest.IsZero() {
		b = append(b, `,"oldest":`...)
		b = appendTime(b, p.oldest)
	}
	b = appendBlocked(b, p.blocked)
	if len(p.violated) > 0 {
		b = append(b, `,"violated-policies":[`...)
		for i, rule := range p.violated {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendText(b, rule)
		}
		b = append(b, ']')
	}
	if p.retryAfter > 0 && len(p.violated) > 0 {
		b = appendField(b, `,"retry_after_ms":`, ceil(p.retryAfter, time.Millisecond))
	}
	return b
}

// appendBatchResult appends the result of one debit of a batch.
func appendBatchResult(b []byte, r *ledger.DebitResult, p *problem, dryRun bool) []byte {
	if r != nil {
		b = append(b, `{"status":200,"replayed":`...)
		b = strconv.AppendBool(b, r.Replayed)
		b = append(b, ',')
		b = appendDebitMembers(b, r, dryRun)
		return append(b, '}')
	}
	b = append(b, `{"status":`...)
	b = strconv.AppendInt(b, int64(p.kind.status), 10)
	b = append(b, `,"replayed":`...)
	b = strconv.AppendBool(b, p.replayed)
	b = appendProblemMembers(b, p)
	return append(b, '}')
}

// ceil rounds d up to whole units.
func ceil(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/unit) + 1
}
