package status

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
)

const (
	// recordsFor is the shortest time for which records are kept before they are read again.
	recordsFor = 4 * time.Second

	// restShare is the pause before the next read of the records, as a multiple of the time that the last read took.
	restShare = 20

	// refusalsBack is the length of the time before now in which refusals are counted.
	refusalsBack = time.Hour

	// tenantsMax is the largest number of tenants in the list of tenants with the most refusals.
	tenantsMax = 10
)

// Records contains data that all instances have written to PostgreSQL.
type Records struct {
	Refusals     Refusals
	Verification *Job // the last verification; nil: no verification was started
	Roll         *Roll
	Seal         *Seal
	Archive      *Archive
}

// Refusals describes the refused requests in [From, To).
type Refusals struct {
	From, To time.Time
	Total    int64
	Minutes  []Minute // minutes with refusals, oldest first
	Tenants  []Refused
}

// Minute is the number of requests that were refused in a minute.
type Minute struct {
	Minute time.Time
	N      int64
}

// Refused is the number of refused requests of one tenant.
type Refused struct {
	Tenant string
	N      int64
	Code   string // the most frequent code of its refusals
}

// Job is a verification or a roll. Status is running, abandoned, or the outcome.
type Job struct {
	ID, Tenant, Status string // Tenant is empty for a job of all tenants
	StartedAt          time.Time
	FinishedAt         time.Time // zero: the job is running or was abandoned
}

// Roll is a job that closes ended periods, with its progress.
type Roll struct {
	Job

	AsOf             time.Time
	Total, Processed int64
}

// Seal describes the newest sealed day of the journal.
type Seal struct {
	Day             time.Time
	Position, Heads int64
	SealedAt        time.Time
}

// Archive describes a month of the journal that was archived.
type Archive struct {
	Month      time.Time
	ArchivedAt time.Time
	RemovedAt  time.Time // zero: some rows are still in PostgreSQL
}

// recorded contains the latest records. Only the goroutine whose element is in the channel `turn` may read or change
// the other fields.
type recorded struct {
	turn  chan struct{}
	value *Records
	until time.Time // instant until which value is used without a new read
}

// readRecords returns the kept records until the instant r.until. After that instant it reads the records again.
func (b *Board) readRecords(ctx context.Context) (*Records, error) {
	r := &b.records
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	began := time.Now()
	if r.value != nil && began.Before(r.until) {
		return r.value, nil
	}
	read, err := history.Report(ctx, b.cfg.Reports, "", b.ask)
	if err != nil {
		return nil, err
	}
	r.value, r.until = read, time.Now().Add(max(recordsFor, restShare*time.Since(began)))
	return read, nil
}

// ask reads the records in one transaction. Connections for reports forbid query plans that these statements need, so
// ask permits these plans again.
func (b *Board) ask(ctx context.Context, pool *pgxpool.Pool) (*Records, error) {
	now := b.cfg.Clock.Now()
	out := &Records{Refusals: Refusals{From: now.Add(-refusalsBack).Truncate(time.Minute).UTC(), To: now.Add(time.Minute).Truncate(time.Minute).UTC()}}
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashagg = on; SET LOCAL enable_sort = on; SET LOCAL plan_cache_mode = force_custom_plan"); err != nil {
			return err
		}
		if err := b.askRefusals(ctx, tx, &out.Refusals); err != nil {
			return err
		}
		return b.askJobs(ctx, tx, out)
	})
	if err != nil {
		return nil, history.Failed("read the status", err)
	}
	return out, nil
}

func (b *Board) askRefusals(ctx context.Context, tx pgx.Tx, out *Refusals) error {
	var m Minute
	rows, _ := tx.Query(ctx, b.sql["RefusalsByMinute"], out.From, out.To) // the rows return its error
	if _, err := pgx.ForEachRow(rows, []any{&m.Minute, &m.N}, func() error {
		out.Total += m.N
		out.Minutes = append(out.Minutes, Minute{m.Minute.UTC(), m.N})
		return nil
	}); err != nil || out.Total == 0 {
		return err
	}
	var t Refused
	var ids []string
	rows, _ = tx.Query(ctx, b.sql["MostRefused"], out.From, out.To, tenantsMax)
	if _, err := pgx.ForEachRow(rows, []any{&t.Tenant, &t.N}, func() error {
		out.Tenants, ids = append(out.Tenants, t), append(ids, t.Tenant)
		return nil
	}); err != nil {
		return err
	}
	codes := map[string]string{}
	rows, _ = tx.Query(ctx, b.sql["RefusedBy"], out.From, out.To, ids)
	if _, err := pgx.ForEachRow(rows, []any{&t.Tenant, &t.Code, &t.N}, func() error {
		if codes[t.Tenant] == "" {
			codes[t.Tenant] = t.Code
		}
		return nil
	}); err != nil {
		return err
	}
	for i := range out.Tenants {
		out.Tenants[i].Code = codes[out.Tenants[i].Tenant]
	}
	return nil
}

func (b *Board) askJobs(ctx context.Context, tx pgx.Tx, out *Records) error {
	var v Job
	var roll Roll
	var seal Seal
	var archive Archive
	var finished, rolled, removed *time.Time
	var abandoned, dropped bool
	for _, q := range []struct {
		statement string
		into      []any
		found     func()
	}{
		{"LastVerification", []any{&v.ID, &v.Tenant, &v.Status, &v.StartedAt, &finished, &abandoned}, func() {
			v.end(finished, abandoned)
			out.Verification = &v
		}},
		{"LastRoll", []any{&roll.ID, &roll.AsOf, &roll.Status, &roll.Total, &roll.Processed, &roll.StartedAt, &rolled, &dropped}, func() {
			roll.end(rolled, dropped)
			roll.AsOf, out.Roll = roll.AsOf.UTC(), &roll
		}},
		{"LastSeal", []any{&seal.Day, &seal.Position, &seal.Heads, &seal.SealedAt}, func() { seal.SealedAt, out.Seal = seal.SealedAt.UTC(), &seal }},
		{"LastArchive", []any{&archive.Month, &archive.ArchivedAt, &removed}, func() {
			archive.ArchivedAt, archive.RemovedAt = archive.ArchivedAt.UTC(), period.OrZero(removed)
			out.Archive = &archive
		}},
	} {
		switch err := tx.QueryRow(ctx, b.sql[q.statement]).Scan(q.into...); {
		case err == nil:
			q.found()
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
	}
	return nil
}

// end sets FinishedAt of a job, and the status "abandoned" if the job was abandoned.
func (j *Job) end(finished *time.Time, abandoned bool) {
	j.StartedAt, j.FinishedAt = j.StartedAt.UTC(), period.OrZero(finished)
	if abandoned {
		j.Status = "abandoned"
	}
}
