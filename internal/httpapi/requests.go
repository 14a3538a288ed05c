package httpapi

import (
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// requests are the members of every request body. They are made once: reading a body builds nothing.
type requests struct {
	check, consume, debit []member[gate.Request]
	batch                 []member[batch]
	hold                  []member[dryable[ledger.Hold]]
	capture               []member[dryable[ledger.HoldChange]]
	release               []member[dryable[ledger.HoldChange]]
	extend                []member[dryable[ledger.HoldChange]]
	refund                []member[dryable[ledger.Refund]]
	grant                 []member[dryable[ledger.Grant]]
	void                  []member[dryable[ledger.Void]]
	adjustment            []member[dryable[ledger.Adjust]]
	lease                 []member[gate.LeaseRequest]
	renewal               []member[time.Duration]
	roll                  []member[rollRequest]
	verification          []member[verificationRequest]
	meter                 []member[catalog.Meter]
	plan                  []member[catalog.Plan]
	tenant                []member[catalog.Tenant]
	patch                 []member[catalog.TenantPatch]
	limit                 []member[catalog.Limit]
	block, prefix         []member[catalog.Block]
	reset                 []member[gate.ResetRequest]
}

func newRequests() *requests {
	items := itemMembers()
	demand := demandMembers(items)
	debit := slices.Concat(demand, changeMembers())
	key := member[gate.Request]{"idempotency_key", false, func(d *document, r *gate.Request) { r.Key = d.key() }}
	limit := limitMembers(matchMembers(), costMembers())
	rule := member[catalog.Limit]{"rule", true, func(d *document, l *catalog.Limit) { l.Rule = d.id() }}
	return &requests{
		check:        append(slices.Concat(demand, dimensionMembers()), staleMember()),
		consume:      slices.Concat(demand, dimensionMembers(), changeMembers()),
		debit:        debit,
		batch:        batchMembers(slices.Concat(debit, []member[gate.Request]{key})),
		hold:         dryables(holdMembers(items)),
		capture:      dryables(captureMembers(items)),
		release:      dryables(releaseMembers()),
		extend:       dryables(extendMembers()),
		refund:       dryables(refundMembers()),
		grant:        dryables(grantMembers()),
		void:         dryables(voidMembers()),
		adjustment:   dryables(adjustmentMembers()),
		lease:        leaseMembers(),
		renewal:      renewalMembers(),
		roll:         rollMembers(),
		verification: verificationMembers(),
		meter:        meterMembers(),
		plan:         planMembers(allowanceMembers(), slices.Concat(limit, []member[catalog.Limit]{rule})),
		tenant:       tenantMembers(),
		patch:        patchMembers(),
		limit:        limit,
		block:        blockMembers(),
		prefix:       prefixMembers(),
		reset:        resetMembers(),
	}
}

// dryable is a request that can be tried out: `"dry_run": true` decides it and does nothing.
type dryable[R any] struct {
	body   R
	dryRun bool
}

// dryables adds the member dry_run to those of a request.
func dryables[R any](members []member[R]) []member[dryable[R]] {
	out := make([]member[dryable[R]], 0, len(members)+1)
	for _, m := range members {
		out = append(out, member[dryable[R]]{m.name, m.required, func(d *document, r *dryable[R]) { m.read(d, &r.body) }})
	}
	return append(out, member[dryable[R]]{"dry_run", false, func(d *document, r *dryable[R]) { r.dryRun = d.boolean() }})
}

// dryOr is what a request is to be handed to.
func dryOr[F any](dryRun bool, try, do F) F {
	if dryRun {
		return try
	}
	return do
}
