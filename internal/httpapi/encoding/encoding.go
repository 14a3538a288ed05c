package encoding

import (
	"encoding/json/jsontext"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// AppendText appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD; only the names of fields that
// clients sent can contain such bytes.
func AppendText(b []byte, s string) []byte {
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

// AppendTime appends t in UTC. The ledger and package period bound all times, so the year has four digits.
func AppendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// AppendTimeOrNull appends t as AppendTime does. It appends null for the zero time.
func AppendTimeOrNull(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return AppendTime(b, t)
}

// AppendField appends `name` and the integer n. `name` is the JSON text between the previous value and n, for example
// `,"limit":`.
func AppendField(b []byte, name string, n int64) []byte {
	b = append(b, name...)
	return strconv.AppendInt(b, n, 10)
}

// AppendTextField appends name, as in AppendField, and the JSON string of text.
func AppendTextField(b []byte, name, text string) []byte { return AppendText(append(b, name...), text) }

// AppendBoolField appends name, as in AppendField, and true or false.
func AppendBoolField(b []byte, name string, value bool) []byte {
	return strconv.AppendBool(append(b, name...), value)
}

// AppendTimeField appends name, as in AppendField, and a time as AppendTime does.
func AppendTimeField(b []byte, name string, t time.Time) []byte {
	return AppendTime(append(b, name...), t)
}

// AppendList appends a list as a JSON array. The function `one` appends one element.
func AppendList[T any](b []byte, list []T, one func([]byte, *T) []byte) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, &list[i])
	}
	return append(b, ']')
}

// AppendDebit appends a debit's result in the form of the contract's DebitAnswer.
func AppendDebit(b []byte, r *ledger.DebitResult, dryRun bool) []byte {
	b = append(b, '{')
	b = AppendDebitMembers(b, r, dryRun)
	return append(b, '}')
}

// AppendConsume appends a consume's result in the form of DebitAnswer, with the limits that were charged.
func AppendConsume(b []byte, r *ledger.DebitResult, limits []gate.LimitVerdict, dryRun bool) []byte {
	b = append(b, '{')
	b = AppendDebitMembers(b, r, dryRun)
	if len(limits) > 0 && !r.Replayed { // the limits of a replay were charged by the first request
		b = append(b, `,"limits":`...)
		b = appendVerdicts(b, limits)
	}
	return append(b, '}')
}

// AppendDebitMembers appends the members of a DebitAnswer without braces. The results of a batch have the same
// members and more.
func AppendDebitMembers(b []byte, r *ledger.DebitResult, dryRun bool) []byte {
	b = AppendTextField(b, `"operation_id":`, r.OperationID)
	b = AppendTextField(b, `,"tenant":`, r.Tenant)
	b = AppendList(append(b, `,"items":`...), r.Items, appendDebitedItem)
	b = AppendTimeField(b, `,"as_of":`, r.AsOf)
	if dryRun {
		b = append(b, `,"dry_run":true`...)
	}
	return b
}

func appendDebitedItem(b []byte, it *ledger.ItemResult) []byte {
	b = AppendTextField(b, `{"meter":`, it.Meter)
	b = AppendField(b, `,"requested":`, it.Requested)
	b = AppendField(b, `,"charged":`, it.Charged)
	b = AppendField(b, `,"shortfall":`, it.Shortfall)
	b = AppendList(append(b, `,"draws":`...), it.Draws, appendDraw)
	if it.Overflow != nil && it.Overflow.Per > 1 {
		b = appendOverflow(b, it)
	}
	b = AppendField(b, `,"remaining":`, it.Remaining)
	return append(b, '}')
}

func appendDraw(b []byte, d *ledger.Draw) []byte {
	b = AppendTextField(b, `{"grant":`, d.Grant)
	b = AppendTextField(b, `,"source":`, string(d.Source))
	b = AppendTextField(b, `,"meter":`, d.Meter)
	b = AppendField(b, `,"amount":`, d.Amount)
	return append(b, '}')
}

// appendOverflow appends the units of an item that another meter paid for, their price, and how the cost was rounded.
// appendDebitedItem calls appendOverflow only if the price is for several units, because only then the cost may be
// rounded.
func appendOverflow(b []byte, it *ledger.ItemResult) []byte {
	paid, meter, cost := it.Overflow, "", int64(0)
	for i := range it.Draws {
		if d := &it.Draws[i]; d.Meter != it.Meter {
			meter, cost = d.Meter, cost+d.Amount
		}
	}
	b = AppendTextField(b, `,"overflow":{"meter":`, meter)
	b = AppendField(b, `,"units":`, paid.Units)
	b = AppendField(b, `,"price":{"units":`, paid.Price)
	b = AppendField(b, `,"per":`, paid.Per)
	b = AppendTextField(b, `},"exact":`, paid.Ratio().Exact(paid.Units))
	b = AppendField(b, `,"rounding":"up","cost":`, cost)
	return append(b, '}')
}

// AppendCheck appends a check's result in the form of CheckAnswer.
func AppendCheck(b []byte, c *gate.Check) []byte {
	b = AppendBoolField(b, `{"allowed":`, c.Allowed)
	if c.Code != "" {
		b = AppendTextField(b, `,"code":`, string(c.Code))
	}
	if c.Limiting != nil {
		b = append(b, `,"limiting":`...)
		b = AppendLimiting(b, c.Limiting)
	}
	b = AppendBlocked(b, c.Blocked)
	b = AppendList(append(b, `,"items":`...), c.Items, appendCheckedItem)
	b = append(b, `,"limits":`...)
	b = appendVerdicts(b, c.Limits)
	b = AppendTextField(b, `,"source":`, string(c.Source))
	b = AppendTimeField(b, `,"as_of":`, c.AsOf)
	if c.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	return append(b, '}')
}

func appendCheckedItem(b []byte, it *gate.CheckItem) []byte {
	b = AppendTextField(b, `{"meter":`, it.Meter)
	b = AppendField(b, `,"required":`, it.Required)
	b = AppendField(b, `,"remaining":`, it.Remaining)
	b = AppendField(b, `,"limit":`, it.Limit)
	b = AppendField(b, `,"max_allowed_now":`, it.MaxAllowedNow)
	if !it.WouldSucceedAt.IsZero() {
		b = AppendTimeField(b, `,"would_succeed_at":`, it.WouldSucceedAt)
	}
	if it.Code != "" {
		b = AppendTextField(b, `,"code":`, string(it.Code))
	}
	return append(b, '}')
}

func appendVerdicts(b []byte, verdicts []gate.LimitVerdict) []byte {
	return AppendList(b, verdicts, appendVerdict)
}

func appendVerdict(b []byte, v *gate.LimitVerdict) []byte {
	b = AppendTextField(b, `{"rule":`, v.Rule)
	b = AppendTextField(b, `,"kind":`, v.Kind)
	if v.Replaces != "" {
		b = AppendTextField(b, `,"replaces":`, v.Replaces)
	}
	b = AppendBoolField(b, `,"allowed":`, v.Allowed)
	b = AppendField(b, `,"remaining":`, v.Remaining)
	b = AppendField(b, `,"limit":`, v.Limit)
	if v.Never {
		b = append(b, `,"retry_after_ms":null`...)
	} else {
		b = AppendField(b, `,"retry_after_ms":`, Ceil(v.RetryAfter, time.Millisecond))
	}
	if v.Delay > 0 {
		b = AppendField(b, `,"delay_ms":`, Ceil(v.Delay, time.Millisecond))
	}
	if v.Banned > 0 {
		b = AppendField(b, `,"banned_ms":`, Ceil(v.Banned, time.Millisecond))
	}
	if v.Late {
		b = AppendField(b, `,"charged":`, v.Charged)
	}
	b = AppendBoolField(b, `,"shadow":`, v.Shadow)
	if v.Shadow {
		b = AppendBoolField(b, `,"would_deny":`, !v.Allowed)
	}
	if v.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	return append(b, '}')
}

// AppendCharge appends the charged limits in the form of ChargeAnswer.
func AppendCharge(b []byte, c *gate.Charged, dryRun bool) []byte {
	b = append(b, `{"allowed":true,"limits":`...)
	b = appendVerdicts(b, c.Limits)
	if c.ID != "" {
		b = AppendTextField(b, `,"charge_id":`, c.ID)
	}
	if dryRun {
		b = append(b, `,"dry_run":true`...)
	}
	return append(b, '}')
}

// AppendChargeSettled appends the answer to the settlement or refund of a charge, which has this member.
func AppendChargeSettled(b []byte, member string, c *gate.ChargeSettled) []byte {
	b = AppendBoolField(b, `{"`+member+`":`, c.Settled)
	b = append(b, `,"limits":`...)
	b = appendVerdicts(b, c.Limits)
	return append(b, '}')
}

// AppendBlocked appends the member blocked, which names the block that refused a request. It appends nothing if
// blocked is nil.
func AppendBlocked(b []byte, blocked *gate.Blocked) []byte {
	if blocked == nil {
		return b
	}
	b = AppendTextField(b, `,"blocked":{"kind":`, blocked.Kind)
	b = AppendTextField(b, `,"value":`, blocked.Value)
	if !blocked.ExpiresAt.IsZero() {
		b = AppendTimeField(b, `,"expires_at":`, blocked.ExpiresAt)
	}
	if blocked.Reason != "" {
		b = AppendTextField(b, `,"reason":`, blocked.Reason)
	}
	return append(b, '}')
}

// AppendLimiting appends the balance, cap or budget that limits a request, as an object of the schema Limiting.
func AppendLimiting(b []byte, l *ledger.Limiting) []byte {
	b = AppendTextField(b, `{"kind":`, l.Kind)
	b = AppendTextField(b, `,"meter":`, l.Meter)
	b = AppendTextField(b, `,"subject":`, l.Subject)
	b = AppendTextField(b, `,"level":`, l.Level)
	return append(b, '}')
}

// Ceil rounds d up to whole units.
func Ceil(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/unit) + 1
}
