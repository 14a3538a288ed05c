package verifier

import (
	"context"
	"errors"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// CopyReader returns what a cache holds of each key, nil where it holds nothing.
type CopyReader func(context.Context, []ledger.BalanceKey) ([]*ledger.BalanceCopy, error)

// Options selects what is verified.
type Options struct {
	Tenant   string             // empty: all
	Copies   CopyReader         // nil: no cache is compared
	Progress func(audit.Report) // called after every chunk; nil: not wanted
	Pause    time.Duration      // between chunks, to spare the database
}

// Verify compares balances, grants, periods and cached copies with the journal: see package audit. CodeTenantNotFound: there is no
// such tenant.
func (v *Verifier) Verify(ctx context.Context, o Options) (*audit.Report, error) {
	if err := v.mustExist(ctx, o.Tenant); err != nil {
		return nil, err
	}
	report, err := v.auditor.Verify(ctx, audit.Options{Tenant: o.Tenant, Copies: auditCopies(o.Copies), Progress: o.Progress, Pause: o.Pause})
	switch {
	case err == nil:
		return report, nil
	case errors.Is(err, context.Canceled):
		return nil, err
	default:
		return nil, unavailable("verify", err)
	}
}

// auditCopies hands the auditor copies in its own terms, as it must not know the ledger's.
func auditCopies(read CopyReader) audit.CopyReader {
	if read == nil {
		return nil
	}
	return func(ctx context.Context, keys []audit.Key) ([]*audit.Copy, error) {
		names := make([]ledger.BalanceKey, len(keys))
		for i, k := range keys {
			names[i] = ledger.BalanceKey(k)
		}
		copies, err := read(ctx, names)
		if err != nil {
			return nil, err
		}
		out := make([]*audit.Copy, len(copies))
		for i, c := range copies {
			if c != nil {
				out[i] = &audit.Copy{Seq: c.Seq, Remaining: c.Remaining, AsOf: c.AsOf, ValidUntil: c.ValidUntil}
			}
		}
		return out, nil
	}
}

// Pin makes an archived checkpoint of every balance at its last entry before an instant: see audit.Auditor.Pin.
func (v *Verifier) Pin(ctx context.Context, before time.Time, progress func(audit.Report)) (*audit.Report, error) {
	report, err := v.auditor.Pin(ctx, before, progress)
	if err != nil {
		return nil, unavailable("pin checkpoints", err)
	}
	return report, nil
}
