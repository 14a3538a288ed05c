package audit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// pageBalances is the number of balances that one transaction compares. It is small, so that the transaction does
	// not delay the removal of dead row versions.
	pageBalances = 200
	// rangeEntries is the default of Auditor.RangeEntries. Such a range is read in about half a second.
	rangeEntries = 100_000
	// chunkTimeout bounds one transaction.
	chunkTimeout = 60 * time.Second
)

// pass is one running verification.
type pass struct {
	auditor   *Auditor
	options   *Options
	report    *Report
	hasher    hasher
	unchained int64     // entries before this instant may be outside the hash chain, microseconds since 1970
	before    time.Time // entries from this instant on are not read
	saved     []saved
	touched   map[string]bool // tenants with entries of refunds or holds
}

// candidate is a balance that a pass will read.
type candidate struct {
	Key

	seq   int64
	facts string
	from  *checkpoint
	chain chain // chain in the balance's row
}

// pending returns the number of entries to read.
func (c *candidate) pending() int64 {
	if c.from != nil {
		return c.seq - c.from.Seq
	}
	return c.seq
}

// unchanged reports whether no entry was written since the checkpoint, and the balance's row is equal to the row that
// was compared then.
func (c *candidate) unchanged() bool {
	return c.from != nil && c.from.Seq == c.seq && c.from.State.Facts == c.facts
}

// page reads the next balances after a key, and the checkpoint at which the read of each balance begins.
func (p *pass) page(ctx context.Context, after Key) ([]*candidate, error) {
	ctx, cancel := context.WithTimeout(ctx, chunkTimeout)
	defer cancel()
	rows, err := p.auditor.pool.Query(ctx, p.auditor.sql["VerifyBalances"], after.Tenant, after.Meter, after.Subject, pageBalances, p.options.Tenant,
		!p.options.Incremental)
	if err != nil {
		return nil, err
	}
	var out []*candidate
	var c candidate
	var seq, at, remaining *int64
	var own, chained []byte
	var state *state
	var archived *bool
	_, err = pgx.ForEachRow(rows, []any{
		&c.Tenant, &c.Meter, &c.Subject, &c.seq, &c.facts, &own, &seq, &at, &remaining, &chained, &state, &archived,
	}, func() error {
		found := c
		found.chain, _ = decodeChain(own)
		if seq != nil {
			from := &checkpoint{Seq: *seq, At: *at, Remaining: *remaining, Archived: *archived, State: *state}
			from.Chain, _ = decodeChain(chained)
			if from.valid() {
				found.from = from
			}
		}
		state = nil
		out = append(out, &found)
		return nil
	})
	return out, err
}

// verify compares a page of balances, in groups that one transaction can read.
func (p *pass) verify(ctx context.Context, page []*candidate) error {
	for len(page) > 0 {
		n, entries := 0, int64(0)
		for n < len(page) && (n == 0 || entries+page[n].pending() <= p.auditor.RangeEntries) {
			entries += page[n].pending()
			n++
		}
		if err := p.group(ctx, page[:n]); err != nil {
			return err
		}
		page = page[n:]
	}
	return nil
}

// group verifies balances together. If that takes too long, it verifies the two halves of the group separately. A
// single balance that cannot be read is reported, and the pass continues.
func (p *pass) group(ctx context.Context, group []*candidate) error {
	if p.options.Incremental {
		changed := make([]*candidate, 0, len(group))
		for _, c := range group {
			if c.unchanged() {
				p.report.Balances++
				p.report.Unchanged++
				p.report.totals[c.Meter] = p.report.totals[c.Meter].plusCheckpoint(c.from)
				continue
			}
			changed = append(changed, c)
		}
		group = changed
	}
	if len(group) == 0 {
		return nil
	}
	before := p.report.mark()
	err := p.compare(ctx, group)
	if err == nil || ctx.Err() != nil || !unreadable(err) {
		return err
	}
	p.report.reset(before)
	if len(group) == 1 {
		p.report.unread(group[0].Key)
		return nil
	}
	if err := p.group(ctx, group[:len(group)/2]); err != nil {
		return err
	}
	return p.group(ctx, group[len(group)/2:])
}

// unreadableCodes are query_canceled, transaction_timeout, lock_not_available and deadlock_detected.
var unreadableCodes = []string{"57014", "25P04", "55P03", "40P01"}

// unreadable reports whether a read ended because it took too long, or waited for a lock on a table.
func unreadable(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && slices.Contains(unreadableCodes, pgErr.Code)
}

// compare reads the entries of a group and compares the balances with them.
func (p *pass) compare(ctx context.Context, group []*candidate) error {
	journals := make([]*journal, len(group))
	for i, c := range group {
		journals[i] = newJournal()
		if c.from != nil {
			journals[i] = c.from.journal()
		}
	}
	if err := p.readAhead(ctx, group, journals); err != nil {
		return err
	}
	keys := make([]Key, len(group))
	for i, c := range group {
		keys[i] = c.Key
	}
	var s *stored
	err := p.auditor.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
		b := &pgx.Batch{}
		s = p.auditor.queueStored(b, keys)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		for i, c := range group {
			if row := s.balances[c.Key]; row != nil {
				group[i].chain, _ = decodeChain(row.chain)
				group[i].facts = row.facts
			}
		}
		if !p.options.Incremental { // it would read entries from before the checkpoint
			if err := s.readPastOverage(ctx, tx, p.auditor.sql["VerifyPastOverage"]); err != nil {
				return err
			}
		}
		return p.read(ctx, tx, group, journals, 1<<62)
	})
	if err != nil {
		return err
	}
	clean := make([]bool, len(group))
	for i, c := range group {
		clean[i] = s.compare(c.Key, journals[i], p.report)
	}
	differ, err := p.compareTerms(ctx, s, group, journals)
	if err != nil {
		return err
	}
	for i, c := range group {
		j := journals[i]
		if clean[i] && !differ[c.Key] && j.last > 0 && !p.options.ReadOnly {
			p.saved = append(p.saved, saved{
				key: c.Key, journal: j, state: stateOf(j, openGrants(s.grants[c.Key], time.UnixMicro(j.at)), c.facts),
			})
		}
	}
	return nil
}

// readAhead reads the entries of a large balance in ranges, except the last range. It reads nothing unless the group
// is one balance with more entries than one transaction should read.
func (p *pass) readAhead(ctx context.Context, group []*candidate, journals []*journal) error {
	for len(group) == 1 && group[0].seq-journals[0].last > p.auditor.RangeEntries {
		last := journals[0].last
		err := p.auditor.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
			return p.read(ctx, tx, group, journals, p.auditor.RangeEntries)
		})
		if err != nil {
			return err
		}
		if journals[0].last == last {
			return nil // there are no entries: the comparison reports that
		}
		if p.options.Progress != nil {
			p.options.Progress(*p.report)
		}
	}
	return nil
}

// read adds to each journal the next entries of its balance, at most n entries for each balance.
func (p *pass) read(ctx context.Context, tx pgx.Tx, group []*candidate, journals []*journal, n int64) error {
	tenants, meters, subjects := make([]string, len(group)), make([]string, len(group)), make([]string, len(group))
	after, until := make([]int64, len(group)), make([]int64, len(group))
	for i, c := range group {
		tenants[i], meters[i], subjects[i] = c.Tenant, c.Meter, c.Subject
		after[i], until[i] = journals[i].last, journals[i].last+n
	}
	rows, err := tx.Query(ctx, p.auditor.sql["VerifyEntries"], tenants, meters, subjects, after, until, p.before)
	if err != nil {
		return err
	}
	return eachEntry(rows, func(i int, e *entry) error {
		c := group[i]
		if err := journals[i].add(&p.hasher, c.Key, e, &c.chain, p.unchained); err != nil {
			return err
		}
		p.report.Entries++
		if len(e.detail) > 0 || e.moves != nil && (e.moves.held != 0 || e.moves.refunded != 0) {
			p.touched[c.Tenant] = true
		}
		return nil
	})
}
