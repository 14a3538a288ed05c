package gate

import (
	"context"
)

// blocked says whether req is refused whatever its limits and balances are, or else whether it is exempt from the limits.
func (g *Gate) blocked(req *Request) (refused *Blocked, exempt bool) {
	block, exempt := g.terms.catalog.Blocks().Find(req.Tenant, req.Subject, req.IP, g.now())
	if block == nil {
		return nil, exempt
	}
	return &Blocked{Kind: block.Kind, Value: block.Value, Reason: block.Reason, ExpiresAt: block.ExpiresAt}, false
}

// blockedCheck is the check of a blocked request. Its balances are an extra: without them the answer is the same.
func (g *Gate) blockedCheck(ctx context.Context, req *Request, facts *facts, blocked *Blocked) Check {
	out, err := g.answerItems(ctx, req, facts, balanceKeys(nil, req), &limited{})
	if err != nil {
		out = Check{Source: SourceLocal, AsOf: g.now()}
	}
	out.Allowed, out.Code, out.Item, out.Blocked = false, CodeForbidden, -1, blocked
	return out
}
