package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// This file has the verbs of scenarios for requests. Each request is a separate batch. If a line begins with the word
// try, nothing is stored, as with dry_run. The comment of each method has the syntax of its verb.

// send validates and sends a request of a tenant. It returns the beginning of the answer: ok, replayed, or the code
// of the error and the fields of the denial. The returned call is nil if the request is refused.
func (s *scenario) send(tenant string, req ledger.Operation) (string, *ledger.Call, error) {
	m, ok := s.tenants[tenant]
	if !ok {
		return "", nil, fmt.Errorf("there is no tenant %q", tenant)
	}
	if err := req.Validate(); err != nil {
		return refusal(err), nil, nil
	}
	c := ledger.NewCall(req)
	m.run(s.rt, []*ledger.Call{c}, s.now, s.trying)
	switch {
	case c.Err != nil:
		return refusal(c.Err), nil, nil
	case c.Replayed:
		return "replayed", c, nil
	}
	return "ok", c, nil
}

func refusal(err error) string {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok {
		return err.Error()
	}
	out := string(e.Code)
	if e.Field() != "" {
		out += " field " + e.Field()
	}
	if d := ledger.DenialOf(e); d != nil {
		out += fmt.Sprintf(" meter %s level %s required %d available %d reset %s would-succeed %s replayed %v",
			d.Limiting.Meter, d.Limiting.Level, d.Required, d.Available, formatInstant(d.ResetAt), formatInstant(d.WouldSucceedAt), d.Replayed)
		if d.Limiting.Subject != "" {
			out += " subject " + d.Limiting.Subject
		}
		var lacking []string
		for _, l := range d.Lacking {
			name := l.Meter
			if l.Subject != "" {
				name += "/" + l.Subject
			}
			lacking = append(lacking, fmt.Sprintf("%s:%d:%d", name, l.Required, l.Available))
		}
		out += " lacking " + strings.Join(lacking, "+")
	}
	return out
}

// drawn returns draws as text: grant:amount for a draw on the item's meter, meter/grant:amount for a draw on another
// meter, and overage:amount for overage.
func drawn(meter string, draws []ledger.Draw) string {
	var out []string
	for _, d := range draws {
		name := nameOf(d.Grant)
		if d.Source == ledger.SourceOverage {
			name = string(ledger.SourceOverage)
		}
		if d.Meter != meter {
			name = d.Meter + "/" + name
		}
		out = append(out, fmt.Sprintf("%s:%d", name, d.Amount))
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, "+")
}

// nameOf shortens the ids that the ledger creates. In an id with an instant, the day replaces the instant:
// allowance:2026-01-01 or rollover:2026-02-01. The other ids become regrant and adjustment.
func nameOf(grant string) string {
	for _, prefix := range []string{"allowance:", "rollover:"} {
		if rest, ok := strings.CutPrefix(grant, prefix); ok {
			return prefix + rest[:len(time.DateOnly)]
		}
	}
	for _, prefix := range []string{"regrant", "adjustment"} {
		if strings.HasPrefix(grant, prefix+"-") {
			return prefix
		}
	}
	return grant
}

// prefixOf returns the prefix of an item's names in the answer: the item's meter and a dot if the request has several
// items, else an empty string.
func prefixOf(items int, meter string) string {
	if items > 1 {
		return meter + "."
	}
	return ""
}

// debit TENANT METER AMOUNT [METER AMOUNT ...] [mode=MODE] [subject=SUBJECT]
func (s *scenario) debit(w words) (string, error) {
	items, err := s.amounts(w.args[1:])
	if err != nil {
		return "", err
	}
	d := &ledger.Debit{Tenant: w.args[0], Key: s.key(w), Subject: w.subject(), Mode: ledger.Mode(w.named["mode"]), Items: items, Suspended: s.suspended[w.args[0]]}
	out, c, err := s.send(d.Tenant, d)
	if c == nil {
		return out, err
	}
	r := c.Answer.(*ledger.DebitResult)
	for _, item := range r.Items {
		out += fmt.Sprintf(" %[1]scharged %[2]d %[1]sshortfall %[3]d %[1]sremaining %[4]d %[1]sfrom %[5]s %[1]slimit %[6]d %[1]sreset %[7]s",
			prefixOf(len(r.Items), item.Meter), item.Charged, item.Shortfall, item.Remaining, drawn(item.Meter, item.Draws), item.Limit,
			formatInstant(item.ResetAt))
	}
	return out, nil
}

// grant TENANT METER AMOUNT [id=GRANT] [source=topup|promo] [priority=N] [from=INSTANT] [until=INSTANT] [cost=TEXT]
func (s *scenario) grant(w words) (string, error) {
	items, err := s.amounts(w.args[1:])
	if err != nil {
		return "", err
	}
	g := &ledger.Grant{
		Tenant: w.args[0], Meter: items[0].Meter, Amount: items[0].Amount, Key: s.key(w), GrantID: w.named["id"], Source: ledger.SourceTopup,
		Subject: w.subject(), CostBasis: w.named["cost"],
	}
	if text, ok := w.named["source"]; ok {
		g.Source = ledger.Source(text)
	}
	if text, ok := w.named["priority"]; ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return "", err
		}
		g.Priority = new(int32(n))
	}
	for name, to := range map[string]*time.Time{"from": &g.EffectiveAt, "until": &g.ExpiresAt} {
		if text, ok := w.named[name]; ok {
			if *to, err = parseInstant(text); err != nil {
				return "", err
			}
		}
	}
	out, c, err := s.send(g.Tenant, g)
	if c == nil {
		return out, err
	}
	r := c.Answer.(*ledger.GrantResult)
	return out + fmt.Sprintf(" status %s remaining %d", r.Grant.Status, r.Position.Remaining), nil
}

// hold TENANT METER AMOUNT [METER AMOUNT ...] id=HOLD [lasts=DURATION] [subject=SUBJECT]
func (s *scenario) hold(w words) (string, error) {
	items, err := s.amounts(w.args[1:])
	if err != nil {
		return "", err
	}
	h := &ledger.Hold{Tenant: w.args[0], Key: s.key(w), HoldID: w.named["id"], Subject: w.subject(), Items: items, Suspended: s.suspended[w.args[0]]}
	if h.TTL, err = w.lasts(); err != nil {
		return "", err
	}
	if _, named := w.named["lasts"]; named && h.TTL == 0 {
		h.TTL = -1 // 0 would be the default
	}
	return s.held(h.Tenant, h)
}

// held sends a request about a hold.
func (s *scenario) held(tenant string, req ledger.Operation) (string, error) {
	out, c, err := s.send(tenant, req)
	if c == nil {
		return out, err
	}
	r := c.Answer.(*ledger.HoldResult)
	out += fmt.Sprintf(" status %s until %s", r.Status, formatInstant(r.ExpiresAt))
	for _, item := range r.Items {
		out += fmt.Sprintf(" %[1]sheld %[2]d %[1]scaptured %[3]d %[1]sremaining %[4]d %[1]sfrom %[5]s",
			prefixOf(len(r.Items), item.Meter), item.Held, item.Captured, item.Remaining, drawn(item.Meter, item.Draws))
	}
	return out, nil
}

// capture TENANT HOLD [METER AMOUNT ...] [final] [on-expired=forfeit|regrant]
func (s *scenario) capture(w words) (string, error) {
	args := w.args[2:]
	at := slices.Index(args, "final")
	if at >= 0 {
		args = slices.Delete(slices.Clone(args), at, at+1)
	}
	items, err := s.amounts(args)
	if err != nil {
		return "", err
	}
	return s.held(w.args[0], &ledger.HoldChange{
		Tenant: w.args[0], HoldID: w.args[1], Key: s.key(w), Action: ledger.ActionCapture, Items: items, Final: at >= 0,
		Return: ledger.ReturnPolicy(w.named["on-expired"]), Suspended: s.suspended[w.args[0]],
	})
}

// release TENANT HOLD [on-expired=forfeit|regrant]
func (s *scenario) release(w words) (string, error) {
	return s.held(w.args[0], &ledger.HoldChange{
		Tenant: w.args[0], HoldID: w.args[1], Key: s.key(w), Action: ledger.ActionRelease, Return: ledger.ReturnPolicy(w.named["on-expired"]),
	})
}

// extend TENANT HOLD lasts=DURATION
func (s *scenario) extend(w words) (string, error) {
	ttl, err := w.lasts()
	if err != nil {
		return "", err
	}
	return s.held(w.args[0], &ledger.HoldChange{Tenant: w.args[0], HoldID: w.args[1], Key: s.key(w), Action: ledger.ActionExtend, TTL: ttl})
}

// refund TENANT KEY [AMOUNT | METER AMOUNT] [on-expired=forfeit|regrant] refunds the debit or capture that was sent
// with KEY.
func (s *scenario) refund(w words) (string, error) {
	r := &ledger.Refund{Tenant: w.args[0], OperationID: w.args[1], Key: s.key(w), Return: ledger.ReturnPolicy(w.named["on-expired"])}
	if at, ok := w.named["at"]; ok {
		var err error
		if r.At, err = parseInstant(at); err != nil {
			return "", err
		}
	}
	rest := w.args[2:]
	if len(rest) > 1 {
		r.Meter, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		n, err := strconv.ParseInt(rest[0], 10, 64)
		if err != nil {
			return "", err
		}
		r.Amount = n
	}
	out, c, err := s.send(r.Tenant, r)
	if c == nil {
		return out, err
	}
	result := c.Answer.(*ledger.RefundResult)
	for _, item := range result.Items {
		out += fmt.Sprintf(" %[1]srefunded %[2]d %[1]sforfeited %[3]d %[1]sremaining %[4]d %[1]sto %[5]s",
			prefixOf(len(result.Items), item.Meter), item.Refunded, item.Forfeited, item.Remaining, drawn(item.Meter, item.Draws))
	}
	return out, nil
}

// adjust TENANT METER +AMOUNT|-AMOUNT reason=WORD [subject=SUBJECT] [if-seq=N]
func (s *scenario) adjust(w words) (string, error) {
	items, err := s.amounts(w.args[1:])
	if err != nil {
		return "", err
	}
	a := &ledger.Adjust{Tenant: w.args[0], Key: s.key(w), Meter: items[0].Meter, Amount: items[0].Amount, Subject: w.subject(), Reason: w.named["reason"]}
	if text, ok := w.named["if-seq"]; ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return "", err
		}
		a.IfSeq = &n
	}
	return s.changed(a.Tenant, a)
}

// void TENANT GRANT reason=WORD [meter=METER]
func (s *scenario) void(w words) (string, error) {
	return s.changed(w.args[0], &ledger.GrantChange{Action: ledger.VoidGrant, Tenant: w.args[0], Key: s.key(w), GrantID: w.args[1], Meter: w.named["meter"], Reason: w.named["reason"]})
}

// prolong TENANT GRANT until=INSTANT|never reason=WORD [meter=METER]
func (s *scenario) prolong(w words) (string, error) {
	x := &ledger.GrantChange{Action: ledger.ExtendGrant, Tenant: w.args[0], Key: s.key(w), GrantID: w.args[1], Meter: w.named["meter"], Reason: w.named["reason"]}
	if until := w.named["until"]; until != "never" {
		var err error
		if x.ExpiresAt, err = parseInstant(until); err != nil {
			return "", err
		}
	}
	out, c, err := s.send(x.Tenant, x)
	if c == nil {
		return out, err
	}
	r := c.Answer.(*ledger.Change)
	return out + fmt.Sprintf(" units %d held %d was %s until %s before %d remaining %d seq %d",
		r.Units, r.Held, formatInstant(period.OrZero(r.Ended)), formatInstant(period.OrZero(r.ExpiresAt)), r.Before, r.Remaining, r.Seq), nil
}

func (s *scenario) changed(tenant string, req ledger.Operation) (string, error) {
	out, c, err := s.send(tenant, req)
	if c == nil {
		return out, err
	}
	r := c.Answer.(*ledger.Change)
	return out + fmt.Sprintf(" by %d before %d remaining %d seq %d", r.Amount, r.Before, r.Remaining, r.Seq), nil
}
