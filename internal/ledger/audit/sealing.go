package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
)

const (
	// sealDelay is the time between the end of a day and its seal: operations that were decided before the end may
	// still be committed. An operation that is committed even later is part of the next seal.
	sealDelay = time.Minute
	// sealPage is the number of balances that are examined together. Most of them have no new entry.
	sealPage = 500
)

// SealOptions select what to seal.
type SealOptions struct {
	Day      time.Time        // first instant of the day in UTC; zero: the last day that has ended
	Signer   seal.Signer      // nil: the checkpoint is not signed
	Host     func() time.Time // the clock of this machine; nil: time.Now
	Progress func(Sealing)    // called after every page; nil: not called
}

// Sealing is the progress of a call of Seal.
type Sealing struct{ Balances, Heads, Entries int64 }

// Refusal is the reason why a request is not possible. Nothing was done.
type Refusal struct{ Reason string }

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// sealRun is the state of one call of Seal.
type sealRun struct {
	*Auditor
	options *SealOptions
	state   sealState
	day     time.Time
	log     seal.Log
	done    Sealing
}

// Seal seals a day. It hashes the entries after the previous seal up to the end of the day, and writes the head of each
// balance. Then it writes the root of the heads to the log of seals. If the day is sealed already, Seal returns that
// seal. Seal can be interrupted and called again. It returns a *Refusal if the day cannot be sealed. It returns another
// error if entries are not in the hash chain of their balance. Then Verify reports the details.
func (a *Auditor) Seal(ctx context.Context, o SealOptions) (*seal.Seal, error) {
	r := &sealRun{Auditor: a, options: &o}
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r.state, err = a.readSealState(ctx); err != nil {
		return nil, err
	}
	list, err := a.seals(ctx, maxPosition)
	if err != nil {
		return nil, err
	}
	sealed, err := r.choose(list)
	if err != nil {
		return nil, err
	}
	if sealed != nil {
		return a.SealAt(ctx, sealed.position)
	}
	for i := range list {
		if err := r.log.Append(list[i].record(r.state.database)); err != nil {
			return nil, err
		}
	}
	if err := r.writeHeads(ctx); err != nil {
		return nil, fmt.Errorf("seal %s: %w", r.day.Format(time.DateOnly), err)
	}
	return r.finish(ctx)
}

// lock takes the lock that allows one sealing run at a time. The lock belongs to a connection of its own.
func (r *sealRun) lock(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	var mine bool
	if err := conn.QueryRow(ctx, r.sql["SealLock"]).Scan(&mine); err != nil {
		conn.Release()
		return nil, fmt.Errorf("seal: take the lock: %w", err)
	}
	if !mine {
		conn.Release()
		return nil, errors.New("another run seals this database; wait for its end")
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if _, err := conn.Exec(ctx, r.sql["SealUnlock"]); err != nil {
			_ = conn.Conn().Close(ctx) // the lock ends with the connection
		}
		conn.Release()
	}, nil
}

// choose selects the day to seal, or returns its seal if it exists.
func (r *sealRun) choose(list []sealRow) (sealed *sealRow, err error) {
	now := r.state.now
	host := time.Now
	if r.options.Host != nil {
		host = r.options.Host
	}
	if own := host(); own.Before(now) {
		now = own
	}
	newest := now.Add(-sealDelay).UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	r.day = r.options.Day
	if r.day.IsZero() {
		r.day = newest
	}
	for i := range list {
		switch s := &list[i]; {
		case s.day.Equal(r.day):
			return s, nil
		case s.day.After(r.day):
			return nil, refuse("%s was not sealed on its own: it is covered by the seal of %s", date(r.day), date(s.day))
		}
	}
	if r.day.After(newest) {
		return nil, refuse("%s has not ended; the newest day that can be sealed is %s", date(r.day), date(newest))
	}
	if r.day.Before(r.state.kept) {
		return nil, refuse("%s is archived; the oldest day that can be sealed is %s", date(r.day), date(r.state.kept))
	}
	return nil, nil
}

func date(t time.Time) string { return t.Format(time.DateOnly) }

// writeHeads writes the heads of all balances with new entries, and of all terms and plans that have changed.
func (r *sealRun) writeHeads(ctx context.Context) error {
	if err := r.dropUnfinished(ctx); err != nil {
		return err
	}
	end := r.day.AddDate(0, 0, 1)
	for after := (Key{}); ; {
		page, last, err := r.page(ctx, after)
		if err != nil {
			return fmt.Errorf("read balances: %w", err)
		}
		if last == after {
			return r.writeAgreements(ctx, end)
		}
		after = last
		entries, err := r.readSegments(ctx, page.segments, end)
		if err != nil {
			return err
		}
		if err := r.save(ctx, page); err != nil {
			return err
		}
		r.done.Entries += entries
		if r.options.Progress != nil {
			r.options.Progress(r.done)
		}
	}
}

// dropUnfinished removes heads of other days without a seal: a run for these days was interrupted.
func (r *sealRun) dropUnfinished(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orphansTimeout)
	defer cancel()
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setTimeout(orphansTimeout)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, r.sql["DropUnsealedHeads"], r.day)
		return err
	})
}

// balancePage has those balances of a page whose newest head does not cover all their entries.
type balancePage struct {
	segments []*segment
	begun    []chain // chain at the beginning of each segment
	stored   []chain // chains in the balances' rows
}

// page reads the next balances after a key. last is the key of the last balance that was examined.
func (r *sealRun) page(ctx context.Context, after Key) (p *balancePage, last Key, err error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	rows, err := r.pool.Query(ctx, r.sql["SealBalances"], after.Tenant, after.Meter, after.Subject, sealPage)
	if err != nil {
		return nil, after, err
	}
	p, last = &balancePage{}, after
	var k Key
	var seq int64
	var own, head, archived []byte
	var day *time.Time
	var archivedSeq *int64
	_, err = pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &seq, &own, &day, &head, &archivedSeq, &archived}, func() error {
		last = k
		r.done.Balances++
		t := &segment{key: k, until: seq}
		if archivedSeq != nil {
			t.last = *archivedSeq
			t.chain, _ = decodeChain(archived)
		}
		if day != nil {
			t.chain, _ = decodeChain(head)
			t.last = t.chain.Last
		}
		if t.pending() == 0 || day != nil && !day.Before(r.day) {
			return nil
		}
		stored, _ := decodeChain(own)
		p.segments, p.begun, p.stored = append(p.segments, t), append(p.begun, t.chain), append(p.stored, stored)
		return nil
	})
	return p, last, err
}

// save writes the heads of a page.
func (r *sealRun) save(ctx context.Context, p *balancePage) error {
	var keys []Key
	var heads [][]byte
	for i, t := range p.segments {
		if stored := &p.stored[i]; t.fault == "" && t.chain.From == stored.From && t.last == stored.Last && t.chain != *stored {
			t.fault = "the entries do not give the hash chain in the balance's row"
		}
		if t.fault != "" {
			return fmt.Errorf("balance %s: %s; nothing was sealed: quotasvc verify says more", t.name(), t.fault)
		}
		if t.chain != p.begun[i] {
			keys, heads = append(keys, t.key), append(heads, t.chain.encode())
		}
	}
	return r.insertHeads(ctx, keys, heads)
}

func (r *sealRun) insertHeads(ctx context.Context, keys []Key, heads [][]byte) error {
	if len(keys) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	tenants, meters, subjects := columnsOf(keys)
	if _, err := r.pool.Exec(ctx, r.sql["SealedHeadsInsert"], tenants, meters, subjects, r.day, heads); err != nil {
		return fmt.Errorf("write heads: %w", err)
	}
	r.done.Heads += int64(len(keys))
	return nil
}

// finish writes and returns the seal.
func (r *sealRun) finish(ctx context.Context) (*seal.Seal, error) {
	var heads seal.Heads
	err := r.inSnapshot(ctx, orphansTimeout, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, r.sql["SealedHeadsOfDay"], r.day)
		if err != nil {
			return err
		}
		var k Key
		var head []byte
		_, err = pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &k.Subject, &head}, func() error {
			heads.Add(k.Tenant, k.Meter, k.Subject, head)
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the heads of %s: %w", date(r.day), err)
	}
	row := sealRow{position: r.log.Size(), day: r.day, heads: heads.N, root: heads.Root(), sealedAt: r.state.now}
	record := row.record(r.state.database)
	if err := r.log.Append(record); err != nil {
		return nil, err
	}
	s, err := seal.New(&r.log, record, row.sealedAt)
	if err != nil {
		return nil, err
	}
	if err := s.Sign(r.options.Signer); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	if _, err := r.pool.Exec(ctx, r.sql["SealInsert"], row.position, row.day, row.heads, row.root[:], s.Checkpoint, row.sealedAt); err != nil {
		return nil, fmt.Errorf("write the seal of %s: %w", date(r.day), err)
	}
	return s, nil
}
