package model

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// AnswerOf returns the answer of a call as text, in the model's format.
func AnswerOf(c *ledger.Call) string {
	if c.Err != nil {
		e, _ := errors.AsType[*errcode.Error](c.Err)
		if d := ledger.DenialOf(e); d != nil {
			return fmt.Sprintf("%s available %d of %s", e.Code, d.Available, d.Limiting.Meter)
		}
		return string(e.Code)
	}
	switch r := c.Answer.(type) {
	case *ledger.DebitResult:
		out := "ok"
		for _, item := range r.Items {
			var draws []string
			for _, d := range item.Draws {
				draws = append(draws, fmt.Sprintf("%s:%s:%d", d.Meter, d.Source, d.Amount))
			}
			out += fmt.Sprintf(" [%s %d of %d, %s, left %d]", item.Meter, item.Charged, item.Requested, strings.Join(draws, " "), item.Remaining)
		}
		return out
	case *ledger.GrantResult:
		return fmt.Sprintf("ok left %d", r.Position.Remaining)
	case *ledger.Change:
		return fmt.Sprintf("ok left %d", r.Remaining)
	case *ledger.HoldResult:
		out := "ok " + string(r.Status)
		for _, item := range r.Items {
			out += fmt.Sprintf(" [%s held %d captured %d left %d]", item.Meter, item.Held, item.Captured, item.Remaining)
		}
		return out
	case *ledger.RefundResult:
		out := "ok"
		for _, item := range r.Items {
			out += fmt.Sprintf(" [%d back, %d forfeited]", item.Refunded, item.Forfeited)
		}
		return out
	}
	return "?"
}

// Suspend marks whether the tenant of a call is suspended, as the callers of the ledger do.
func Suspend(c *ledger.Call, suspended bool) {
	switch r := c.Op.(type) {
	case *ledger.Debit:
		r.Suspended = suspended
	case *ledger.Hold:
		r.Suspended = suspended
	}
}
