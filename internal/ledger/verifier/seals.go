package verifier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
)

// Seal seals a day: see audit.Auditor.Seal.
func (v *Verifier) Seal(ctx context.Context, o audit.SealOptions) (*seal.Seal, error) {
	s, err := v.auditor.Seal(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return s, nil
}

// CheckSeal compares the journal with a seal: see audit.Auditor.CheckSeal.
func (v *Verifier) CheckSeal(ctx context.Context, s *seal.Seal, progress func(audit.SealReport)) (*audit.SealReport, error) {
	report, err := v.auditor.CheckSeal(ctx, s, progress)
	if err != nil {
		return nil, fmt.Errorf("check the seal: %w", err)
	}
	return report, nil
}

// Seals returns the newest seals before a position in their log, newest first, at most limit.
func (v *Verifier) Seals(ctx context.Context, before int64, limit int) ([]audit.SealInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	list, err := v.auditor.Seals(ctx, before, limit)
	if err != nil {
		return nil, unavailable("list seals", err)
	}
	return list, nil
}

// SealOfDay returns the seal of a day with its proofs. It returns errcode.NotFound if the day has no seal.
func (v *Verifier) SealOfDay(ctx context.Context, day time.Time) (*seal.Seal, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	position, of, found, err := v.auditor.SealOf(ctx, day)
	switch text := day.Format(time.DateOnly); {
	case err != nil:
		return nil, unavailable("look up a seal", err)
	case !found:
		return nil, errcode.Errorf(errcode.NotFound, "day", "%s is not sealed: run quotasvc seal --day %s when it has ended", text, text)
	case !of.Equal(day):
		return nil, errcode.Errorf(errcode.NotFound, "day", "%s was not sealed on its own: it is covered by the seal of %s", text, of.Format(time.DateOnly))
	}
	s, err := v.auditor.SealAt(ctx, position)
	if err != nil {
		return nil, unavailable("read a seal", err)
	}
	return s, nil
}

// Refused reports whether err means that a day cannot be sealed, or that a seal cannot be checked, so that a retry
// does not help. It returns the reason.
func Refused(err error) (reason string, ok bool) {
	refusal, ok := errors.AsType[*audit.Refusal](err)
	if !ok {
		return "", false
	}
	return refusal.Reason, true
}
