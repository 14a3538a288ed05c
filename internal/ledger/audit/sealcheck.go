package audit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
)

// headsPage is the number of sealed heads that one query reads.
const headsPage = 2000

// SealReport is the result of the check of a seal.
type SealReport struct {
	Seals       int64 // number of seals up to the checked seal
	Heads       int64
	Archived    int64 // heads whose entries are archived: only the root is compared, if the heads still exist
	Entries     int64 // entries hashed again
	Balances    int64 // balances of these entries
	Differences []string
	Count       int64 // all differences; Differences has the first DifferencesMax
}

// Clean reports whether nothing differs.
func (r *SealReport) Clean() bool { return r.Count == 0 }

func (r *SealReport) add(format string, args ...any) {
	r.Count++
	if len(r.Differences) < DifferencesMax {
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	}
}

// sealCheck is the state of one call of CheckSeal.
type sealCheck struct {
	*Auditor
	seal     *seal.Seal
	until    time.Time // day of the seal
	report   *SealReport
	progress func(SealReport)
	days     map[time.Time]*seal.Heads // heads of the days with a seal
	open     *segment                  // segment of the balance whose head was read last
}

// CheckSeal compares the journal and the log of seals with a seal that a third party keeps. Every head that was sealed
// up to the seal's day must be the hash of the entries as they are now. The heads of each day must have the day's root,
// and the log must have the root of the seal's checkpoint. CheckSeal returns a *Refusal if the seal belongs to another
// database.
func (a *Auditor) CheckSeal(ctx context.Context, s *seal.Seal, progress func(SealReport)) (*SealReport, error) {
	state, err := a.readSealState(ctx)
	if err != nil {
		return nil, err
	}
	if s.Database != state.database {
		return nil, refuse("it is of another database (%s; this one is %s)", s.Database, state.database)
	}
	list, err := a.seals(ctx, s.Position)
	if err != nil {
		return nil, err
	}
	c := &sealCheck{Auditor: a, seal: s, report: &SealReport{Seals: int64(len(list))}, progress: progress, days: map[time.Time]*seal.Heads{}}
	if c.until, err = time.Parse(time.DateOnly, s.Day); err != nil {
		return nil, fmt.Errorf("day of the seal: %w", err)
	}
	if err := c.compareLog(list, state.database); err != nil {
		return nil, err
	}
	if err := c.compareHeads(ctx); err != nil {
		return nil, fmt.Errorf("check the seal of %s: %w", s.Day, err)
	}
	for i := range list {
		if row := &list[i]; !row.day.Before(state.kept) {
			c.compareRoot(row)
		}
	}
	return c.report, nil
}

// compareLog compares the log of seals with the seal.
func (c *sealCheck) compareLog(list []sealRow, database string) error {
	s, r := c.seal, c.report
	if want := s.Position + 1; int64(len(list)) != want {
		r.add("the seal of %s is number %d; the database has %d seals up to there", s.Day, want, len(list))
	}
	var l seal.Log
	for i := range list {
		row := &list[i]
		c.days[row.day] = &seal.Heads{}
		if err := l.Append(row.record(database)); err != nil {
			return err
		}
		if row.position != s.Position {
			continue
		}
		if got := row.record(database); *got != *s.Record() {
			r.add("seal of %s: %d heads with root %s were sealed; the database has the seal of %s with %d heads and root %s",
				s.Day, s.Heads, s.Root, got.Day, got.Heads, got.Root)
		}
		if row.checkpoint != s.Checkpoint {
			r.add("seal of %s: the database has another checkpoint: %q", s.Day, row.checkpoint)
		}
	}
	trees := []seal.Tree{s.Tree()}
	if s.Previous != nil {
		trees = append(trees, *s.Previous)
	}
	for _, t := range trees {
		if l.Size() < t.Size {
			continue // already reported
		}
		root, err := l.RootAt(t.Size)
		if err != nil {
			return fmt.Errorf("root of the log: %w", err)
		}
		if root != t.Root {
			r.add("the first %d seals had the root %s together; those of the database have %s", t.Size, t.Root, root)
		}
	}
	return nil
}

// sealedHead is a row of sealed_heads, with the end of the archived entries of its balance.
type sealedHead struct {
	Key

	day         time.Time
	chain       []byte
	archivedSeq *int64
	archived    []byte
}

// compareHeads hashes the entries of the sealed heads again.
func (c *sealCheck) compareHeads(ctx context.Context) error {
	for after := (sealedHead{day: time.Time{}}); ; {
		page, err := c.readHeads(ctx, &after)
		if err != nil {
			return fmt.Errorf("read sealed heads: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		after = page[len(page)-1]
		var segments []*segment
		var agreed []sealedHead
		for i := range page {
			if page[i].isAgreement() {
				if c.addHead(&page[i]) {
					agreed = append(agreed, page[i])
				}
				continue
			}
			if t := c.take(&page[i]); len(segments) == 0 || segments[len(segments)-1] != t {
				segments = append(segments, t)
			}
		}
		entries, err := c.readSegments(ctx, slices.Clone(segments), forever)
		if err != nil {
			return err
		}
		c.report.Entries += entries
		for _, t := range segments {
			c.compareRest(t)
		}
		if err := c.compareAgreed(ctx, agreed); err != nil {
			return err
		}
		if c.progress != nil {
			c.progress(*c.report)
		}
	}
}

func (c *sealCheck) readHeads(ctx context.Context, after *sealedHead) ([]sealedHead, error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	rows, err := c.pool.Query(ctx, c.sql["SealedHeads"], after.Tenant, after.Meter, after.Subject, after.day, headsPage, c.until)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h sealedHead, err error) {
		return h, row.Scan(&h.Tenant, &h.Meter, &h.Subject, &h.day, &h.chain, &h.archivedSeq, &h.archived)
	})
}

// addHead adds a head to its day. It returns false if the day has no seal: the run for it was interrupted.
func (c *sealCheck) addHead(h *sealedHead) bool {
	heads := c.days[h.day]
	if heads == nil {
		return false
	}
	heads.Add(h.Tenant, h.Meter, h.Subject, h.chain)
	c.report.Heads++
	return true
}

// take adds a head to its day and to its balance's segment, and returns the segment.
func (c *sealCheck) take(h *sealedHead) *segment {
	inSeal := c.addHead(h)
	t := c.open
	if t == nil || t.key != h.Key {
		t = &segment{key: h.Key, differ: c.differ}
		if h.archivedSeq != nil {
			t.last = *h.archivedSeq
			t.chain, _ = decodeChain(h.archived)
		}
		c.open = t
		c.report.Balances++
	}
	head, valid := decodeChain(h.chain)
	switch {
	case !inSeal, t.reported: // or the first difference was reported
	case !valid || head.From == 0:
		c.report.add("%s: the head that was sealed on %s cannot be read", t.name(), date(h.day))
	case h.archivedSeq != nil && head.Last < *h.archivedSeq:
		c.report.Archived++
	case h.archivedSeq != nil && !t.continues(&head):
		t.chain, t.last = head, head.Last
		c.report.Archived++
	default:
		t.marks, t.until = append(t.marks, mark{h.day, head}), head.Last
		t.compare()
	}
	return t
}

// continues reports whether a sealed head can be the hash of the segment and the entries after it. A head cannot if it
// covers archived entries that were written before balances had chains.
func (t *segment) continues(head *chain) bool {
	return len(t.marks) > 0 || head.From == t.chain.From || t.chain.From == 0 && head.From == t.last+1
}

// compareRest reports the first mark whose entry was not found.
func (c *sealCheck) compareRest(t *segment) {
	if len(t.marks) == 0 {
		return
	}
	m := &t.marks[0]
	what := t.fault
	if what == "" {
		what = fmt.Sprintf("the journal ends with entry %d", t.last)
	}
	c.report.add("%s: entries %d to %d were sealed on %s; %s", t.name(), m.chain.From, m.chain.Last, date(m.day), what)
	t.marks, t.reported = nil, true
}

// differ reports a head that is not the hash of the entries.
func (c *sealCheck) differ(t *segment, m *mark) {
	c.report.add("%s: entries %d to %d are not those that were sealed on %s", t.name(), m.chain.From, m.chain.Last, date(m.day))
}

func (t *segment) name() string {
	if t.key.Subject == "" {
		return t.key.Tenant + "/" + t.key.Meter
	}
	return t.key.Tenant + "/" + t.key.Meter + "/" + t.key.Subject
}

// compareRoot compares the heads of a day with its seal.
func (c *sealCheck) compareRoot(row *sealRow) {
	heads := c.days[row.day]
	if heads.N != row.heads || heads.Root() != row.root {
		c.report.add("heads of %s: %d were sealed, with root %s; the database has %d, with root %s", date(row.day), row.heads, row.root, heads.N, heads.Root())
	}
}
