package pg

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// verificationBeat is how often a running verification saves its progress. One that has not saved for a minute counts as abandoned,
// so several beats may be late.
const verificationBeat = 5 * time.Second

// VerificationStatus is the state of a verification.
type VerificationStatus string

// The states of a verification. The process of an abandoned one has ended.
const (
	VerificationRunning   VerificationStatus = "running"
	VerificationClean     VerificationStatus = "clean"
	VerificationDrift     VerificationStatus = "drift" // differences were found
	VerificationFailed    VerificationStatus = "failed"
	VerificationAbandoned VerificationStatus = "abandoned"
)

// Verification is a Verify that runs in the background.
type Verification struct {
	ID         string
	Tenant     string // empty: all
	Status     VerificationStatus
	Report     audit.Report // so far, while it runs
	Error      string
	StartedAt  time.Time
	FinishedAt time.Time // zero while running
}

// StartVerification starts a verification in the background, including cached copies, and returns at once.
func (l *Ledger) StartVerification(ctx context.Context, tenant string) (Verification, error) {
	if tenant != "" {
		if e := ledger.ValidateID("tenant", tenant); e != nil {
			return Verification{}, e
		}
		if err := l.mustExist(ctx, tenant); err != nil {
			return Verification{}, err
		}
	}
	v := Verification{ID: "verification-" + rand.Text(), Tenant: tenant, Status: VerificationRunning}
	err := l.jobs.start(func() (func(context.Context), error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		if err := l.readers.QueryRow(ctx, l.sql["InsertVerification"], v.ID, tenant).Scan(&v.StartedAt); err != nil {
			return nil, unavailable("begin verification", err)
		}
		running := v
		return func(ctx context.Context) { l.runVerification(ctx, &running) }, nil
	})
	if err != nil {
		return Verification{}, err
	}
	v.StartedAt = v.StartedAt.UTC()
	return v, nil
}

func (l *Ledger) runVerification(ctx context.Context, v *Verification) {
	var mu sync.Mutex // guards v.Report while Verify runs
	progress := func(r audit.Report) {
		mu.Lock()
		defer mu.Unlock()
		v.Report = r.Clone()
	}
	save := func(ctx context.Context) {
		mu.Lock()
		defer mu.Unlock()
		if err := l.saveVerification(ctx, v); err != nil {
			l.log.Warn("the progress of a verification was not saved", "verification_id", v.ID, "error", err)
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
	report, err := l.Verify(ctx, VerifyOptions{Tenant: v.Tenant, Copies: l.cfg.Copies, Progress: progress})
	close(ended)
	beats.Wait()
	switch {
	case err != nil:
		v.Status, v.Error = VerificationFailed, err.Error()
		l.log.Warn("a verification was not finished", "verification_id", v.ID, "error", err)
	case report.Clean():
		v.Status, v.Report = VerificationClean, *report
	default:
		v.Status, v.Report = VerificationDrift, *report
		l.log.Error("journal and state differ", "verification_id", v.ID, "differences", report.Count)
	}
	save(context.WithoutCancel(ctx))
}

func (l *Ledger) saveVerification(ctx context.Context, v *Verification) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	report, err := json.Marshal(v.Report)
	if err != nil {
		return fmt.Errorf("ledger: encode report: %w", err)
	}
	if _, err := l.readers.Exec(ctx, l.sql["UpdateVerification"], v.ID, string(v.Status), report, v.Error); err != nil {
		return unavailable("save verification", err)
	}
	return nil
}

// VerificationStatus looks up a verification by its id.
func (l *Ledger) VerificationStatus(ctx context.Context, id string) (Verification, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	v := Verification{ID: id}
	var report []byte
	var finished *time.Time
	var abandoned bool
	err := l.readers.QueryRow(ctx, l.sql["VerificationByID"], id).Scan(&v.Tenant, &v.Status, &report, &v.Error, &v.StartedAt, &finished, &abandoned)
	if errors.Is(err, pgx.ErrNoRows) {
		return Verification{}, ledger.Errorf(ledger.CodeNotFound, "verification_id", "verification %q does not exist", id)
	}
	if err != nil {
		return Verification{}, unavailable("read verification", err)
	}
	if err := json.Unmarshal(report, &v.Report); err != nil {
		return Verification{}, &ledger.Error{Code: ledger.CodeInternal, Detail: "the stored report cannot be read", Cause: err}
	}
	if abandoned {
		v.Status = VerificationAbandoned
	}
	v.StartedAt, v.FinishedAt = v.StartedAt.UTC(), utcOrZero(finished)
	return v, nil
}
