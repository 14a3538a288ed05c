package httpapi

import (
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/access/link"
	"github.com/quotasvc/quotasvc/internal/catalog/gauge"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/catalogdoc"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/notify/webhooks"
)

// bodies has the table of members for each kind of request body. The tables are created when the server starts,
// because allocating them for each request would be slow.
type bodies struct {
	check, consume, debit []body.Member[gate.Request]
	charge                []body.Member[gate.ChargeRequest]
	chargeRefund          []body.Member[settlement]
	chargeSettle          []body.Member[settlement]
	batch                 []body.Member[batch]
	checkBatch            []body.Member[[]gate.Request]
	hold                  []body.Member[withDryRun[ledger.Hold]]
	capture               []body.Member[withDryRun[ledger.HoldChange]]
	release               []body.Member[withDryRun[ledger.HoldChange]]
	extend                []body.Member[withDryRun[ledger.HoldChange]]
	refund                []body.Member[withDryRun[ledger.Refund]]
	grant                 []body.Member[withDryRun[ledger.Grant]]
	void                  []body.Member[withDryRun[ledger.GrantChange]]
	extension             []body.Member[withDryRun[ledger.GrantChange]]
	adjustment            []body.Member[withDryRun[ledger.Adjust]]
	lease                 []body.Member[gate.LeaseRequest]
	renewal               []body.Member[time.Duration]
	roll                  []body.Member[rollRequest]
	verification          []body.Member[verificationRequest]
	reset                 []body.Member[gate.BucketRequest]
	key                   []body.Member[access.New]
	rotation              []body.Member[access.Rotation]
	clock                 []body.Member[time.Duration]
	catalog               []body.Member[catalogdoc.Request]
	gauge                 []body.Member[withDryRun[gauge.Change]]
	webhook, webhookPatch []body.Member[webhooks.Change]
	replay                []body.Member[webhooks.Replay]
	link                  []body.Member[link.New]
}

func newBodies() *bodies {
	items := itemMembers()
	demand := demandMembers(items)
	debit := slices.Concat(demand, changeMembers())
	feature := featureMembers(demand)
	check := append(slices.Concat(feature, dimensionMembers()), staleMember())
	key := body.Optional("idempotency_key", func(d *body.Document, r *gate.Request) { r.Key = d.Key() })
	return &bodies{
		check:        check,
		checkBatch:   checkBatchMembers(check),
		consume:      slices.Concat(feature, dimensionMembers(), changeMembers()),
		debit:        append(slices.Clone(debit), atMember()),
		charge:       chargeMembers(),
		chargeRefund: chargeRefundMembers(),
		chargeSettle: chargeSettleMembers(),
		batch:        batchMembers(slices.Concat(debit, []body.Member[gate.Request]{key})),
		hold:         addDryRun(holdMembers(items)),
		capture:      addDryRun(captureMembers(items)),
		release:      addDryRun(releaseMembers()),
		extend:       addDryRun(extendMembers()),
		refund:       addDryRun(refundMembers()),
		grant:        addDryRun(grantMembers()),
		void:         addDryRun(voidMembers()),
		extension:    addDryRun(extensionMembers()),
		adjustment:   addDryRun(adjustmentMembers()),
		lease:        leaseMembers(),
		renewal:      renewalMembers(),
		roll:         rollMembers(),
		verification: verificationMembers(),
		reset:        resetMembers(),
		key:          access.Members(),
		rotation:     access.RotationMembers(),
		clock:        clockMembers(),
		catalog:      catalogdoc.Members(),
		gauge:        addDryRun(gaugeMembers()),
		webhook:      webhooks.Members(),
		webhookPatch: webhooks.PatchMembers(),
		replay:       webhooks.ReplayMembers(),
		link:         link.Members(),
	}
}

// withDryRun is a request whose body may contain `"dry_run": true`. A dry run is answered like the request itself,
// and changes nothing.
type withDryRun[R any] struct {
	request R
	dryRun  bool
}

// addDryRun returns the members of a request, and the member dry_run.
func addDryRun[R any](members []body.Member[R]) []body.Member[withDryRun[R]] {
	out := make([]body.Member[withDryRun[R]], 0, len(members)+1)
	for _, m := range members {
		read := func(d *body.Document, r *withDryRun[R]) { m.Read(d, &r.request) }
		out = append(out, body.Member[withDryRun[R]]{Name: m.Name, Required: m.Required, Read: read})
	}
	return append(out, body.Optional("dry_run", func(d *body.Document, r *withDryRun[R]) { r.dryRun = d.Boolean() }))
}
