package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pin writes an archived checkpoint for every balance at its last entry before an instant. The entries up to the
// checkpoint can then be removed. It begins at the archived checkpoints that exist, reads the entries in ranges, and
// checks their numbering, times, remainders and months as Verify does. It does not compare them with balances, grants
// and periods, because these rows have the present state. So Verify must run before Pin. A balance without new
// entries keeps its checkpoint. Pin may be interrupted and run again.
//
// The report lists differences within the entries. If there is one, nothing may be removed.
func (a *Auditor) Pin(ctx context.Context, before time.Time, progress func(Report)) (*Report, error) {
	report := newReport()
	p := &pass{auditor: a, options: &Options{}, report: report, before: before, touched: map[string]bool{}}
	if err := a.pool.QueryRow(ctx, a.sql["ChainStart"]).Scan(&p.unchained); err != nil {
		return nil, fmt.Errorf("pin: %w", err)
	}
	for after := (Key{}); ; {
		page, err := p.page(ctx, after)
		if err != nil {
			return nil, fmt.Errorf("pin: read balances: %w", err)
		}
		if len(page) == 0 {
			return report, nil
		}
		for rest := page; len(rest) > 0; {
			n, entries := 0, int64(0)
			for n < len(rest) && (n == 0 || entries+rest[n].pending() <= p.auditor.RangeEntries) {
				entries += rest[n].pending()
				n++
			}
			if err := p.pin(ctx, rest[:n]); err != nil {
				return nil, fmt.Errorf("pin: %w", err)
			}
			rest = rest[n:]
		}
		after = page[len(page)-1].Key
		if progress != nil {
			progress(report.Clone())
		}
	}
}

// pin writes the checkpoints of a group of balances.
func (p *pass) pin(ctx context.Context, group []*candidate) error {
	journals, keys := make([]*journal, len(group)), make([]Key, len(group))
	for i, c := range group {
		keys[i], journals[i] = c.Key, newJournal()
		if c.from != nil {
			journals[i] = c.from.journal()
		}
	}
	for more := true; more; {
		last := journals[0].last
		err := p.auditor.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
			return p.read(ctx, tx, group, journals, p.auditor.RangeEntries)
		})
		if err != nil {
			return err
		}
		more = len(group) == 1 && journals[0].last == last+p.auditor.RangeEntries
	}
	var s *stored
	err := p.auditor.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
		b := &pgx.Batch{}
		s = p.auditor.queueStored(b, keys)
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return err
	}
	var made []saved
	for i, c := range group {
		j := journals[i]
		for _, f := range j.faults {
			p.report.add(c.Key, f.what, f.want, f.got)
		}
		if len(j.faults) > 0 || j.last == 0 || c.from != nil && c.from.Seq == j.last {
			continue
		}
		p.report.Balances++
		made = append(made, saved{key: c.Key, journal: j, state: stateOf(j, openGrants(s.grants[c.Key], p.before), ""), archived: true})
	}
	return p.auditor.save(ctx, made)
}
