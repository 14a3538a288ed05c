package verifier

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// CopyReader returns the cached copy of each key, nil for a key without a copy.
type CopyReader func(context.Context, []ledger.BalanceKey) ([]*ledger.BalanceCopy, error)

// Options selects what is verified.
type Options struct {
	Tenant   string             // empty: all
	Copies   CopyReader         // nil: no cache is compared
	Progress func(audit.Report) // called after every chunk; nil: not called
	Pause    time.Duration      // pause between chunks, to limit the load on the database
	// Full reads the whole journal. Otherwise a pass over a journal with more than wholeUpTo entries reads only the
	// entries since the last clean pass.
	Full bool
}

// Verify compares balances, grants, periods and cached copies with the journal: see package audit. It returns
// errcode.TenantNotFound if the tenant does not exist.
func (v *Verifier) Verify(ctx context.Context, o Options) (*audit.Report, error) {
	if err := v.mustExist(ctx, o.Tenant); err != nil {
		return nil, err
	}
	a := audit.Options{Tenant: o.Tenant, Copies: v.auditCopies(o.Copies), Terms: v.compareTerms, Progress: o.Progress, Pause: o.Pause}
	if !o.Full {
		if err := v.pool.QueryRow(ctx, v.sql["JournalIsLarge"], o.Tenant, v.wholeUpTo).Scan(&a.Incremental); err != nil {
			return nil, unavailable("verify", err)
		}
	}
	if !a.Incremental && o.Tenant == "" {
		v.resume(ctx, &a)
	}
	report, err := v.auditor.Verify(ctx, a)
	if err == nil && a.Save != nil {
		if _, err := v.pool.Exec(ctx, v.sql["ForgetPosition"]); err != nil {
			v.log.Warn("the position of a finished verification was not removed", "error", err)
		}
	}
	switch {
	case err == nil:
		return report, nil
	case errors.Is(err, context.Canceled):
		return nil, err
	case errors.Is(err, audit.ErrCopiesUnread):
		e := unavailable("verify", err)
		e.Detail = "the verifier cannot read the cached copies of balances: Redis does not answer"
		return nil, e
	default:
		return nil, unavailable("verify", err)
	}
}

// wholeUpTo is the number of entries up to which every pass reads the whole journal, which takes some seconds.
const wholeUpTo = 1_000_000

// positionEvery is how often a full pass saves its position. After an interruption, the next pass repeats at most
// this much work.
const positionEvery = 2 * time.Second

// resume lets a full pass continue where the last full pass was interrupted, and makes it save its position.
func (v *Verifier) resume(ctx context.Context, o *audit.Options) {
	var stored []byte
	err := v.pool.QueryRow(ctx, v.sql["SavedPosition"]).Scan(&stored)
	if err == nil {
		var at audit.Position
		if err = json.Unmarshal(stored, &at); err == nil {
			o.After = &at
			v.log.Info("verification continues where the last full one was interrupted", "tenant", at.Key.Tenant, "balances", at.Report.Balances)
		}
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		v.log.Warn("the position of the last verification cannot be read; it begins anew", "error", err)
	}
	saved := time.Now()
	o.Save = func(ctx context.Context, at *audit.Position) {
		if time.Since(saved) < v.positionEvery {
			return
		}
		saved = time.Now()
		text, err := json.Marshal(at)
		if err == nil {
			_, err = v.pool.Exec(ctx, v.sql["SavePosition"], text)
		}
		if err != nil {
			v.log.Warn("the position of a verification was not saved", "error", err)
		}
	}
}

// copiesPatience is how long a verification waits until the cache answers. It is longer than the time for which calls
// to Redis fail at once after some have failed (redisstore.RetryAfter, 5 s). A busy machine is late with an answer now
// and then, and a verification of an hour must not end because of that.
const copiesPatience = 12 * time.Second

// readPatiently reads copies until the cache answers. It returns an error if the cache does not answer for the time
// `patience`.
func readPatiently(
	ctx context.Context, read CopyReader, keys []ledger.BalanceKey, patience time.Duration,
) ([]*ledger.BalanceCopy, error) {
	began, wait := time.Now(), backoff.New(100*time.Millisecond, 2*time.Second)
	for {
		copies, err := read(ctx, keys)
		if err == nil || time.Since(began) >= patience || !wait.Wait(ctx) {
			return copies, err
		}
	}
}

// auditCopies converts copies to the auditor's types: package audit must not import package ledger.
func (v *Verifier) auditCopies(read CopyReader) audit.CopyReader {
	if read == nil {
		return nil
	}
	return func(ctx context.Context, keys []audit.Key) ([]*audit.Copy, error) {
		names := make([]ledger.BalanceKey, len(keys))
		for i, k := range keys {
			names[i] = ledger.BalanceKey(k)
		}
		copies, err := readPatiently(ctx, read, names, v.copiesPatience)
		if err != nil {
			return nil, err
		}
		out := make([]*audit.Copy, len(copies))
		for i, c := range copies {
			if c != nil {
				out[i] = &audit.Copy{Seq: c.Seq, Remaining: c.Remaining, AsOf: c.AsOf, ValidUntil: c.ValidUntil, Derived: c.Derived}
			}
		}
		return out, nil
	}
}

// Pin creates an archived checkpoint of every balance at its last entry before an instant: see audit.Auditor.Pin.
func (v *Verifier) Pin(ctx context.Context, before time.Time, progress func(audit.Report)) (*audit.Report, error) {
	report, err := v.auditor.Pin(ctx, before, progress)
	if err != nil {
		return nil, unavailable("pin checkpoints", err)
	}
	return report, nil
}
