package verifier

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

// verificationBeat is how often a running verification saves its progress. After a minute without a save it counts as
// abandoned, so several saves may be late.
const verificationBeat = 5 * time.Second

// VerificationStatus is the state of a verification.
type VerificationStatus string

// The states of a verification. A verification is abandoned if it is still running but has stored no heartbeat for a
// minute: usually its process has ended.
const (
	VerificationRunning   VerificationStatus = "running"
	VerificationClean     VerificationStatus = "clean"
	VerificationDrift     VerificationStatus = "drift"  // differences were found
	VerificationFailed    VerificationStatus = "failed" // not finished, or not everything could be read
	VerificationAbandoned VerificationStatus = "abandoned"
)

// Outcome returns how a verification with this report ended, and why it failed. A balance that could not be read is
// neither clean nor different.
func Outcome(r *audit.Report) (status VerificationStatus, failure string) {
	switch {
	case r.Count > 0:
		return VerificationDrift, ""
	case r.Unread > 0:
		return VerificationFailed, fmt.Sprintf("%d balances could not be read, because of a time-out or a lock; the others agree", r.Unread)
	default:
		return VerificationClean, ""
	}
}

// Verification is a verification in the background, with its progress or its result.
type Verification struct {
	ID         string
	Tenant     string // empty: all
	Status     VerificationStatus
	Report     audit.Report // preliminary while it runs
	Error      string
	StartedAt  time.Time
	FinishedAt time.Time // zero while running
}

// StartVerification starts a verification in the background, including cached copies, and returns at once. If a
// verification of the same tenant runs on this instance, StartVerification returns that verification. If another
// verification runs, StartVerification fails with errcode.QueueFull.
func (v *Verifier) StartVerification(ctx context.Context, tenant string) (Verification, error) {
	if err := v.mustExist(ctx, tenant); err != nil {
		return Verification{}, err
	}
	started := Verification{ID: "verification-" + rand.Text(), Tenant: tenant, Status: VerificationRunning}
	running, err := v.slot.take(&started)
	if err != nil {
		return Verification{}, err
	}
	if running != nil {
		return *running, nil
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	var at time.Time
	err = pgx.BeginFunc(ctx, v.pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, v.sql["InsertVerification"], started.ID, tenant).Scan(&at); err != nil {
			return err
		}
		return recordStart(ctx, tx, &started)
	})
	if err != nil {
		v.slot.free(started.ID)
		return Verification{}, unavailable("begin verification", err)
	}
	now := Verification{ID: started.ID, Tenant: tenant, Status: VerificationRunning, StartedAt: at.UTC()}
	v.slot.begun(now)
	changing := now
	v.slot.run(now.ID, func(ctx context.Context) { v.runVerification(ctx, &changing) }, func(err error) { v.saveFailure(&now, err) })
	return now, nil
}

// recordStart writes to the audit log that an administrator has started a verification. It does so in the transaction
// that stores the verification.
func recordStart(ctx context.Context, tx pgx.Tx, of *Verification) error {
	actor := auditlog.From(ctx)
	if !actor.Admin {
		return nil
	}
	return auditlog.Record(ctx, tx, []auditlog.Line{{
		Actor: actor, Action: "verification.start", Object: auditlog.Object{Kind: "verification", ID: of.ID, Tenant: of.Tenant},
		After: map[string]any{"status": of.Status},
	}})
}

// saveFailure records that a verification ended without a result.
func (v *Verifier) saveFailure(of *Verification, cause error) {
	v.log.Error("a verification was not finished", "verification_id", of.ID, "error", cause)
	failed := *of
	failed.Status, failed.Error = VerificationFailed, "internal error; the log has it"
	if err := v.saveVerification(context.Background(), &failed); err != nil {
		v.log.Warn("the end of a verification was not saved", "verification_id", of.ID, "error", err)
	}
}

func (v *Verifier) runVerification(ctx context.Context, of *Verification) {
	var mu sync.Mutex // guards of.Report while Verify runs
	progress := func(r audit.Report) {
		mu.Lock()
		defer mu.Unlock()
		of.Report = r.Clone()
	}
	save := func(ctx context.Context) {
		mu.Lock()
		defer mu.Unlock()
		if err := v.saveVerification(ctx, of); err != nil {
			v.log.Warn("the progress of a verification was not saved", "verification_id", of.ID, "error", err)
		}
	}
	ended := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		ticker := time.NewTicker(verificationBeat)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				save(ctx)
			case <-ended:
				return
			}
		}
	})
	report, err := v.Verify(ctx, Options{Tenant: of.Tenant, Copies: v.cfg.Copies, Progress: progress})
	close(ended)
	beats.Wait()
	if err != nil {
		of.Status, of.Error = VerificationFailed, err.Error()
	} else {
		of.Report = *report
		of.Status, of.Error = Outcome(report)
	}
	switch of.Status {
	case VerificationFailed:
		v.log.Warn("a verification was not finished", "verification_id", of.ID, "error", of.Error)
	case VerificationDrift:
		v.log.Error("journal and state differ", "verification_id", of.ID, "differences", report.Count)
	case VerificationRunning, VerificationClean, VerificationAbandoned:
	}
	v.slot.leave(of.ID) // a client that reads the result may start the next verification
	save(context.WithoutCancel(ctx))
}

// saveVerification records the progress or the end of a verification. At the end of the verification it also emits,
// in the same transaction, an event for each balance that differs.
func (v *Verifier) saveVerification(ctx context.Context, of *Verification) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	report, err := json.Marshal(of.Report)
	if err != nil {
		return fmt.Errorf("verifier: encode report: %w", err)
	}
	err = pgx.BeginFunc(ctx, v.pool, func(tx pgx.Tx) error {
		var at time.Time
		if err := tx.QueryRow(ctx, v.sql["UpdateVerification"], of.ID, string(of.Status), report, of.Error).Scan(&at); err != nil {
			return err
		}
		if of.Status != VerificationDrift {
			return nil
		}
		return events.Record(ctx, tx, drifts(&of.Report, of.Tenant, of.ID, at))
	})
	if err != nil {
		return unavailable("save verification", err)
	}
	return nil
}

// VerificationStatus looks up a verification by its id.
func (v *Verifier) VerificationStatus(ctx context.Context, id string) (Verification, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	of := Verification{ID: id}
	var report []byte
	var finished *time.Time
	var abandoned bool
	err := v.pool.QueryRow(ctx, v.sql["VerificationByID"], id).Scan(&of.Tenant, &of.Status, &report, &of.Error, &of.StartedAt, &finished, &abandoned)
	if errors.Is(err, pgx.ErrNoRows) {
		return Verification{}, errcode.Errorf(errcode.NotFound, "verification_id", "verification %q does not exist", id)
	}
	if err != nil {
		return Verification{}, unavailable("read verification", err)
	}
	if err := json.Unmarshal(report, &of.Report); err != nil {
		return Verification{}, &errcode.Error{Code: errcode.Internal, Detail: "the stored report cannot be read", Cause: err}
	}
	if abandoned {
		of.Status = VerificationAbandoned
	}
	of.StartedAt = of.StartedAt.UTC()
	of.FinishedAt = period.OrZero(finished)
	return of, nil
}
