package httpapi

import (
	"slices"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// requests are the members of every request body. They are made once: reading a body builds nothing.
type requests struct {
	check, consume, debit []member[gate.Request]
	batch                 []member[batch]
	hold                  []member[holdRequest]
	capture               []member[ledger.HoldChange]
	release               []member[ledger.HoldChange]
	extend                []member[ledger.HoldChange]
	refund                []member[ledger.Refund]
	grant                 []member[grantRequest]
	void                  []member[ledger.Void]
	adjustment            []member[adjustment]
	roll                  []member[rollRequest]
	meter                 []member[catalog.Meter]
	plan                  []member[catalog.Plan]
	tenant                []member[catalog.Tenant]
	patch                 []member[catalog.TenantPatch]
	limit                 []member[catalog.Limit]
}

func newRequests() *requests {
	items := itemMembers()
	demand := demandMembers(items)
	debit := slices.Concat(demand, changeMembers())
	key := member[gate.Request]{"idempotency_key", false, func(d *document, r *gate.Request) { r.Key = d.key() }}
	limit := limitMembers(matchMembers())
	rule := member[catalog.Limit]{"rule", true, func(d *document, l *catalog.Limit) { l.Rule = d.id() }}
	return &requests{
		check:      append(slices.Concat(demand, dimensionMembers()), staleMember()),
		consume:    slices.Concat(demand, dimensionMembers(), changeMembers()),
		debit:      debit,
		batch:      batchMembers(slices.Concat(debit, []member[gate.Request]{key})),
		hold:       holdMembers(items),
		capture:    captureMembers(items),
		release:    releaseMembers(),
		extend:     extendMembers(),
		refund:     refundMembers(),
		grant:      grantMembers(),
		void:       voidMembers(),
		adjustment: adjustmentMembers(),
		roll:       rollMembers(),
		meter:      meterMembers(),
		plan:       planMembers(allowanceMembers(), slices.Concat(limit, []member[catalog.Limit]{rule})),
		tenant:     tenantMembers(),
		patch:      patchMembers(),
		limit:      limit,
	}
}
