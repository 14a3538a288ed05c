package httpapi

import (
	"encoding/json/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// text draws strings that answers may contain: mostly ids, and any text that an error may quote.
func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9._:-]{1,20}`), rapid.String(), rapid.SampledFrom([]string{"", "§open/é", "a\"\\\n\x00<&>", "\u2028"}))
}

func amount() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(0, bound.MaxAmount), rapid.Int64Range(0, 3))
}

// instant draws a time in any zone, with the microseconds that PostgreSQL stores.
func instant() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		at := time.UnixMicro(rapid.Int64Range(-60e15, 250e15).Draw(t, "at"))
		if rapid.Bool().Draw(t, "whole") {
			at = at.Truncate(time.Second)
		}
		return at.In(time.FixedZone("", rapid.IntRange(-12, 14).Draw(t, "zone")*3600))
	})
}

func instantOrZero() *rapid.Generator[time.Time] {
	return rapid.OneOf(instant(), rapid.Just(time.Time{}))
}

// sameJSON fails the test unless `written` is the same JSON as the encoding of `value`. The type of `value` is from
// the contract.
func sameJSON(t *rapid.T, written []byte, value any) {
	t.Helper()
	want, err := json.Marshal(value)
	require.NoError(t, err)
	var a, b any
	require.NoError(t, json.Unmarshal(written, &a), "%s", written)
	require.NoError(t, json.Unmarshal(want, &b))
	require.Equal(t, b, a)
}

func drawDebit(t *rapid.T) *ledger.DebitResult {
	r := &ledger.DebitResult{
		OperationID: "k" + text().Draw(t, "operation"), Tenant: "t" + text().Draw(t, "tenant"), AsOf: instant().Draw(t, "as of"),
		Replayed: rapid.Bool().Draw(t, "replayed"),
	}
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		it := ledger.ItemResult{
			Meter: text().Draw(t, "meter"), Requested: amount().Draw(t, "requested"), Charged: amount().Draw(t, "charged"),
			Shortfall: amount().Draw(t, "shortfall"), Position: ledger.Position{Remaining: amount().Draw(t, "remaining")},
		}
		for range rapid.IntRange(0, 3).Draw(t, "draws") {
			it.Draws = append(it.Draws, ledger.Draw{
				Grant: text().Draw(t, "grant"), Source: ledger.Source(text().Draw(t, "source")), Meter: it.Meter, Amount: amount().Draw(t, "drawn"),
			})
		}
		if rapid.Bool().Draw(t, "overflow") {
			it.Overflow = &price.Payment{Units: 1 + amount().Draw(t, "units"), Price: 1 + amount().Draw(t, "price"), Per: amount().Draw(t, "per")}
			for range rapid.IntRange(1, 2).Draw(t, "paying") {
				it.Draws = append(it.Draws, ledger.Draw{Meter: "c" + it.Meter, Amount: rapid.Int64Range(1, 1<<40).Draw(t, "cost")})
			}
		}
		r.Items = append(r.Items, it)
	}
	return r
}

func itemsOf(r *ledger.DebitResult) []client.DebitedItem {
	return answers.Map(r.Items, func(it *ledger.ItemResult) client.DebitedItem {
		var overflow client.OverflowPayment
		if o := it.Overflow; o != nil && o.Per > 1 {
			overflow = client.OverflowPayment{
				Meter: "c" + it.Meter, Units: o.Units, Price: client.OverflowRatio{Units: o.Price, Per: o.Per}, Rounding: "up",
				Exact: price.Ratio{Units: o.Price, Per: o.Per}.Exact(o.Units),
			}
			for _, d := range it.Draws {
				if d.Meter != it.Meter {
					overflow.Cost += d.Amount
				}
			}
		}
		return client.DebitedItem{
			Overflow: overflow,
			Meter:    it.Meter, Requested: it.Requested, Charged: it.Charged, Shortfall: it.Shortfall, Remaining: it.Remaining,
			Draws: answers.Map(it.Draws, func(d *ledger.Draw) client.Draw {
				return client.Draw{Grant: d.Grant, Source: client.Source(d.Source), Meter: d.Meter, Amount: d.Amount}
			}),
		}
	})
}

func TestAppendDebitAnswer_EqualsTypeJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, dry := drawDebit(t), rapid.Bool().Draw(t, "dry")
		limits, said := drawVerdicts(t)
		if r.Replayed || len(said) == 0 {
			said = nil
		}
		sameJSON(t, encoding.AppendConsume(nil, r, limits, dry), client.DebitAnswer{
			OperationID: r.OperationID, Tenant: r.Tenant, Items: itemsOf(r), Limits: said, AsOf: r.AsOf.UTC(), DryRun: dry,
		})
		sameJSON(t, appendBatchResult(nil, r, nil, dry), client.BatchResult{
			Status: 200, Replayed: r.Replayed, OperationID: r.OperationID, Tenant: r.Tenant, Items: itemsOf(r), AsOf: r.AsOf.UTC(), DryRun: dry,
		})
	})
}

func TestAppendCheckAnswer_EqualsTypeJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &gate.Check{
			Allowed: rapid.Bool().Draw(t, "allowed"), Code: errcode.Code(text().Draw(t, "code")), Source: gate.Source(text().Draw(t, "source")),
			AsOf: instant().Draw(t, "as of"), Degraded: rapid.Bool().Draw(t, "degraded"),
		}
		want := client.CheckAnswer{
			Allowed: c.Allowed, Code: client.ProblemCode(c.Code), Source: client.CheckAnswerSource(c.Source), AsOf: c.AsOf.UTC(), Degraded: c.Degraded,
			Items: []client.CheckedItem{}, Limits: []client.LimitVerdict{},
		}
		if rapid.Bool().Draw(t, "limiting") {
			c.Limiting = &ledger.Limiting{Kind: text().Draw(t, "kind"), Meter: text().Draw(t, "meter"), Level: "tenant"}
			want.Limiting = &client.Limiting{Kind: client.LimitingKind(c.Limiting.Kind), Meter: c.Limiting.Meter, Level: "tenant"}
		}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			it := gate.CheckItem{
				Meter: text().Draw(t, "meter"), Required: amount().Draw(t, "required"), Remaining: amount().Draw(t, "remaining"),
				Limit: amount().Draw(t, "limit"), MaxAllowedNow: amount().Draw(t, "most"), WouldSucceedAt: instantOrZero().Draw(t, "then"),
				Code: errcode.Code(text().Draw(t, "code")),
			}
			c.Items = append(c.Items, it)
			out := client.CheckedItem{
				Meter: it.Meter, Required: it.Required, Remaining: it.Remaining, Limit: it.Limit, MaxAllowedNow: it.MaxAllowedNow, Code: client.ProblemCode(it.Code),
			}
			if !it.WouldSucceedAt.IsZero() {
				out.WouldSucceedAt = it.WouldSucceedAt.UTC()
			}
			want.Items = append(want.Items, out)
		}
		c.Blocked, want.Blocked = drawBlocked(t)
		c.Limits, want.Limits = drawVerdicts(t)
		sameJSON(t, encoding.AppendCheck(nil, c), want)
	})
}

// drawVerdicts draws verdicts of limits. It returns them in the gate's type and in the contract's type.
func drawVerdicts(t *rapid.T) (limits []gate.LimitVerdict, said []client.LimitVerdict) {
	said = []client.LimitVerdict{}
	for range rapid.IntRange(0, 3).Draw(t, "limits") {
		v := gate.LimitVerdict{
			Rule: text().Draw(t, "rule"), Kind: text().Draw(t, "kind"), Replaces: text().Draw(t, "replaces"), Allowed: rapid.Bool().Draw(t, "passes"),
			Remaining: amount().Draw(t, "tokens"), Limit: amount().Draw(t, "burst"), RetryAfter: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "retry")),
			Delay: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "delay")), Shadow: rapid.Bool().Draw(t, "shadow"),
			Never: rapid.Bool().Draw(t, "never"), Late: rapid.Bool().Draw(t, "late"),
			Banned: time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "banned")), Charged: rapid.Int64Range(0, 3).Draw(t, "charged"), Degraded: rapid.Bool().Draw(t, "degraded"),
		}
		limits = append(limits, v)
		out := client.LimitVerdict{
			Rule: v.Rule, Kind: client.LimitKind(v.Kind), Replaces: v.Replaces, Allowed: v.Allowed, Remaining: v.Remaining, Limit: v.Limit,
			DelayMs: encoding.Ceil(v.Delay, time.Millisecond), BannedMs: encoding.Ceil(v.Banned, time.Millisecond), Shadow: v.Shadow, Degraded: v.Degraded,
		}
		if !v.Never {
			out.RetryAfterMs = new((v.RetryAfter + time.Millisecond - 1).Milliseconds())
		}
		if v.Late {
			out.Charged = &v.Charged
		}
		if v.Shadow {
			out.WouldDeny = new(!v.Allowed)
		}
		said = append(said, out)
	}
	return limits, said
}

func drawBlocked(t *rapid.T) (blocked *gate.Blocked, said *client.Blocked) {
	if !rapid.Bool().Draw(t, "blocked") {
		return nil, nil
	}
	blocked = &gate.Blocked{
		Kind: "k" + text().Draw(t, "kind"), Value: text().Draw(t, "value"), Reason: text().Draw(t, "reason"), ExpiresAt: instantOrZero().Draw(t, "end"),
	}
	said = &client.Blocked{Kind: client.BlockKind(blocked.Kind), Value: blocked.Value, Reason: blocked.Reason}
	if !blocked.ExpiresAt.IsZero() {
		said.ExpiresAt = blocked.ExpiresAt.UTC()
	}
	return blocked, said
}

func TestAppendProblem_EqualsTypeJSON(t *testing.T) {
	t.Parallel()
	s := &Server{problems: problemKinds()}
	rapid.Check(t, func(t *rapid.T) {
		p := problem{code: rapid.SampledFrom([]errcode.Code{
			errcode.QuotaExceeded, errcode.Unavailable, errcode.InvalidArgument, gate.CodeRateLimited, errcode.Conflict,
		}).Draw(t, "code"), detail: text().Draw(t, "detail"), violated: rapid.SliceOfN(text(), 0, 3).Draw(t, "violated")}
		p.retryAfter = time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "retry"))
		var blocked *client.Blocked
		p.blocked, blocked = drawBlocked(t)
		for range rapid.IntRange(0, 2).Draw(t, "fields") {
			p.fields = append(p.fields, body.Fault{Field: text().Draw(t, "field"), Message: text().Draw(t, "message")})
		}
		if rapid.Bool().Draw(t, "denied") {
			p.denial = &ledger.Denial{
				Limiting: ledger.Limiting{Kind: "credit", Meter: text().Draw(t, "meter"), Subject: text().Draw(t, "subject"), Level: "tenant"},
				Required: amount().Draw(t, "required"), Available: amount().Draw(t, "available"), ResetAt: instant().Draw(t, "reset"),
				WouldSucceedAt: instantOrZero().Draw(t, "then"), AsOf: instant().Draw(t, "as of"),
			}
		}
		p = s.complete(p)
		want := client.Problem{
			Type: p.uri, Title: p.kind.title, Status: p.kind.status, Detail: p.detail, Code: client.ProblemCode(p.code), RequestID: "r1",
			ViolatedPolicies: p.violated, Blocked: blocked,
		}
		for _, f := range p.fields {
			want.Errors = append(want.Errors, client.FieldError(f))
		}
		if p.retryAfter > 0 && len(p.violated) > 0 {
			want.RetryAfterMs = encoding.Ceil(p.retryAfter, time.Millisecond)
		}
		if d := p.denial; d != nil {
			want.Limiting = &client.Limiting{Kind: "credit", Meter: d.Limiting.Meter, Subject: d.Limiting.Subject, Level: "tenant"}
			want.Required, want.Available, want.ResetAt = &d.Required, &d.Available, new(d.ResetAt.UTC())
			if !d.WouldSucceedAt.IsZero() {
				want.WouldSucceedAt = d.WouldSucceedAt.UTC()
			}
		}
		sameJSON(t, appendProblem(nil, &p, "r1"), want)
		p.blocked = nil // a debit of a batch does not check blocks
		sameJSON(t, appendBatchResult(nil, nil, &p, false), client.BatchResult{
			Type: want.Type, Title: want.Title, Status: want.Status, Detail: want.Detail, Code: want.Code, Errors: want.Errors, ViolatedPolicies: want.ViolatedPolicies,
			RetryAfterMs: want.RetryAfterMs, Limiting: want.Limiting, Required: want.Required, Available: want.Available, ResetAt: want.ResetAt,
			WouldSucceedAt: want.WouldSucceedAt,
		})
	})
}

func TestAppendProblem_NullReset_InvalidUTF8Replaced(t *testing.T) {
	t.Parallel()
	s := &Server{problems: problemKinds()}
	p := s.complete(problem{code: errcode.CreditsExhausted, denial: &ledger.Denial{Required: 2, Available: 1}})
	var got map[string]any
	require.NoError(t, json.Unmarshal(appendProblem(nil, &p, "r"), &got))
	at, there := got["reset_at"]
	assert.True(t, there && at == nil, "reset_at: %v, %v", at, there)
	assert.Equal(t, "\"a\ufffdb\"", string(encoding.AppendText(nil, "a\xffb")))
}

func TestCeil_RoundsUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		-1: 0, 0: 0, 1: 1, time.Second - 1: 1, time.Second: 1, time.Second + 1: 2, 10 * time.Second: 10,
	} {
		assert.Equal(t, want, encoding.Ceil(d, time.Second), d)
	}
}
