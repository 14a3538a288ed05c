package gate

import (
	"context"

	"github.com/quotasvc/quotasvc/internal/kit/address"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// blocked returns the block that refuses req. If no block refuses req, exempt reports whether a block exempts req
// from limits.
func (g *Gate) blocked(req *Request) (refused *Blocked, exempt bool) {
	blocks := g.tenants.catalog.Blocks()
	block, exempt := blocks.Find(req.Tenant, req.Subject, req.IP, g.now())
	if inner := address.Embedded(req.IP); block == nil && inner != req.IP {
		var exemptInner bool
		block, exemptInner = blocks.Find(req.Tenant, req.Subject, inner, g.now())
		exempt = exempt || exemptInner
	}
	if block == nil {
		return nil, exempt
	}
	return &Blocked{Kind: block.Kind, Value: block.Value, Reason: block.Reason, ExpiresAt: block.ExpiresAt}, false
}

// blockedCheck returns the check of a blocked request. It includes the balances if they can be read.
func (g *Gate) blockedCheck(ctx context.Context, req *Request, facts *tenantFacts, blocked *Blocked) Check {
	var out Check
	var err error
	if facts.isNew {
		out, err = g.checkNew(req)
	} else {
		keys := appendKeys(make([]ledger.BalanceKey, 0, fewItems), req)
		out, err = g.answerItems(ctx, req, facts, g.lookup(ctx, keys, g.copies.Reads(keys, req.MaxStale), true))
	}
	if err != nil {
		out = Check{Source: SourceLocal, AsOf: g.now()}
	}
	out.Allowed = false
	out.Code = CodeForbidden
	out.Item = -1
	out.Blocked = blocked
	return out
}
