package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
)

// maxPosition is greater than every position in the log.
const maxPosition = int64(1) << 62

// sealState is the state of the database that is needed to make and to check seals.
type sealState struct {
	now      time.Time
	database string
	kept     time.Time // the first day that is not archived
}

// sealRow is a row of seals.
type sealRow struct {
	position   int64
	day        time.Time
	heads      int64
	root       seal.Hash
	checkpoint string
	sealedAt   time.Time
}

func (s *sealRow) record(database string) *seal.Record {
	return &seal.Record{Database: database, Day: date(s.day), Heads: s.heads, Root: s.root}
}

// SealInfo is a seal in a list.
type SealInfo struct {
	Day      time.Time
	Position int64 // position in the log, from 0
	Heads    int64 // balances with new entries
	Root     seal.Hash
	SealedAt time.Time
}

func (a *Auditor) readSealState(ctx context.Context) (s sealState, err error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	if err := a.pool.QueryRow(ctx, a.sql["SealState"]).Scan(&s.now, &s.database, &s.kept); err != nil {
		return s, fmt.Errorf("read the database's state: %w", err)
	}
	return s, nil
}

// seals returns the log up to a position.
func (a *Auditor) seals(ctx context.Context, position int64) ([]sealRow, error) {
	return a.readSeals(ctx, "Seals", position)
}

func (a *Auditor) readSeals(ctx context.Context, statement string, args ...any) ([]sealRow, error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	rows, err := a.pool.Query(ctx, a.sql[statement], args...)
	if err != nil {
		return nil, fmt.Errorf("read seals: %w", err)
	}
	var out []sealRow
	var s sealRow
	var root []byte
	_, err = pgx.ForEachRow(rows, []any{&s.position, &s.day, &s.heads, &root, &s.checkpoint, &s.sealedAt}, func() error {
		copy(s.root[:], root)
		out = append(out, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read seals: %w", err)
	}
	return out, nil
}

// Seals returns the newest seals before a position of the log, newest first, at most limit.
func (a *Auditor) Seals(ctx context.Context, before int64, limit int) ([]SealInfo, error) {
	rows, err := a.readSeals(ctx, "SealsPage", before, limit)
	if err != nil {
		return nil, err
	}
	out := make([]SealInfo, len(rows))
	for i := range rows {
		s := &rows[i]
		out[i] = SealInfo{Day: s.day, Position: s.position, Heads: s.heads, Root: s.root, SealedAt: s.sealedAt}
	}
	return out, nil
}

// SealOf returns the position of the seal that covers the end of a day, and the day of that seal. found is false if the
// day is not sealed.
func (a *Auditor) SealOf(ctx context.Context, day time.Time) (position int64, of time.Time, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	rows, err := a.pool.Query(ctx, a.sql["SealOfDay"], day)
	if err != nil {
		return 0, of, false, fmt.Errorf("read seals: %w", err)
	}
	_, err = pgx.ForEachRow(rows, []any{&position, &of}, func() error { found = true; return nil })
	if err != nil {
		return 0, of, false, fmt.Errorf("read seals: %w", err)
	}
	return position, of, found, nil
}

// SealAt returns the seal at a position of the log, with its proofs.
func (a *Auditor) SealAt(ctx context.Context, position int64) (*seal.Seal, error) {
	state, err := a.readSealState(ctx)
	if err != nil {
		return nil, err
	}
	list, err := a.seals(ctx, position)
	if err != nil {
		return nil, err
	}
	if int64(len(list)) != position+1 {
		return nil, fmt.Errorf("the log has %d seals up to position %d", len(list), position)
	}
	var l seal.Log
	for i := range list {
		if err := l.Append(list[i].record(state.database)); err != nil {
			return nil, err
		}
	}
	row := &list[position]
	s, err := seal.New(&l, row.record(state.database), row.sealedAt)
	if err != nil {
		return nil, err
	}
	s.Checkpoint = row.checkpoint
	return s, nil
}
