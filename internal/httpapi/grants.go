package httpapi

import (
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

const (
	costBasisMax = 128
	reasonMax    = ledger.TextMax
)

func grantMembers() []body.Member[ledger.Grant] {
	sources := []string{string(ledger.SourceTopup), string(ledger.SourcePromo), string(ledger.SourceAdjustment)}
	return []body.Member[ledger.Grant]{
		body.Required("meter", func(d *body.Document, g *ledger.Grant) { g.Meter = d.ID() }),
		body.Required("amount", func(d *body.Document, g *ledger.Grant) { g.Amount = d.Amount() }),
		body.Required("source", func(d *body.Document, g *ledger.Grant) { g.Source = ledger.Source(d.Word(sources...)) }),
		body.Optional("subject", func(d *body.Document, g *ledger.Grant) { g.Subject = d.Name() }),
		body.Optional("grant_id", func(d *body.Document, g *ledger.Grant) { g.GrantID = d.Name() }),
		body.Optional("priority", func(d *body.Document, g *ledger.Grant) {
			priority := int32(d.Integer(0, int64(ledger.PriorityMax)))
			g.Priority = &priority
		}),
		body.Optional("effective_at", func(d *body.Document, g *ledger.Grant) { g.EffectiveAt = d.Instant() }),
		body.Optional("expires_at", func(d *body.Document, g *ledger.Grant) { g.ExpiresAt = d.Instant() }),
		body.Optional("cost_basis", func(d *body.Document, g *ledger.Grant) { g.CostBasis = d.Characters(1, costBasisMax) }),
		body.Optional("reason", func(d *body.Document, g *ledger.Grant) { g.Reason = d.Prose(1, reasonMax) }),
	}
}

// grant creates a grant for a tenant.
func (s *Server) grant(rc *request) error {
	req := withDryRun[ledger.Grant]{request: ledger.Grant{Tenant: rc.tenant}}
	if err := readOperation(rc, &req, s.bodies.grant, &req.request.Tenant, &req.request.Key); err != nil {
		return err
	}
	result, err := s.gate.Grant(rc.ctx, &req.request, req.dryRun)
	if err != nil {
		return err
	}
	rc.markReplayed(result.Replayed)
	return rc.send(createdStatus(!req.dryRun), answers.GrantAnswer(result, req.dryRun))
}

// listGrants answers with a page of a tenant's grants, including closed grants.
func (s *Server) listGrants(rc *request) error {
	q := pg.GrantQuery{Tenant: rc.tenant, Meter: rc.query.id("meter"), Status: ledger.GrantStatus(rc.query.word("status", "open", "pending", "active", "exhausted", "expired", "voided"))}
	q.Limit, q.Cursor = rc.query.page()
	if err := rc.query.err(); err != nil {
		return err
	}
	page, err := s.ledger.Grants(rc.ctx, q)
	return sendPage(rc, page.Items, page.NextCursor, err, answers.Grant)
}
