package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Changes has what the row of a balance says about changes of terms inside its open period, and what the entries and
// the other rows say about the same. Which values the row may have depends on terms.
type Changes struct {
	// The columns of the row.
	Entitled, Short, Carried, OverageBefore int64
	CarriedFrom                             time.Time // zero: no earlier use counts
	AllowanceAt                             time.Time
	TermsAt, UpdatedAt                      time.Time

	// The next fields are about the allowance of the open period, which are the allowances since AllowanceAt.
	Complete bool      // the entries of all of them are known; false after a checkpoint that lacks some
	Whole    bool      // an entry gave it as a whole
	Given    int64     // units that it gave, less those that changes of terms took back
	Left     int64     // units that can still be drawn
	Ends     time.Time // the latest of their ends; zero: there are none

	GivenAt time.Time    // when a change of terms last gave the allowance as a whole; zero: no entry says that one did
	Owing   int64        // overage of earlier periods that the open period owes at its beginning
	Past    *PastOverage // nil: not read, because a checkpoint has the entries or because no earlier use counts
}

// PastOverage is the overage between CarriedFrom and the open period.
type PastOverage struct {
	Units          int64
	Paid           int64 // by allowances and rollovers, before the open period
	RefundedBefore int64 // refunded before the open period
	RefundedSince  int64 // refunded in the open period, of overage that was forgiven
}

// changesOf returns the changes of balance k, whose row knows them.
func (s *stored) changesOf(k Key, j *journal) *Changes {
	b := s.balances[k]
	c := &Changes{
		Entitled: b.entitled, Short: b.short, Carried: b.carried, OverageBefore: b.overageBefore,
		AllowanceAt: b.allowanceAt, TermsAt: b.termsAt, UpdatedAt: b.updatedAt,
		Complete: true,
	}
	if b.carriedFrom.Unix() != 0 {
		c.CarriedFrom = b.carriedFrom
	}
	if open := j.periods[b.start.UnixMicro()]; open != nil {
		c.Owing = open.owing
	}
	// Otherwise entries may be removed.
	if j.resumed == nil || !j.resumed.Archived || j.resumed.At < b.carriedFrom.UnixMicro() {
		c.Past = s.past[k]
	}
	for i := range s.grants[k] {
		g := &s.grants[k][i]
		if g.source != "allowance" {
			continue
		}
		sums := j.grants[g.id]
		if sums != nil && sums.renewed(b) {
			c.GivenAt = later(c.GivenAt, time.UnixMicro(sums.Begins))
		}
		if !g.effectiveAt.Before(b.allowanceAt) {
			c.addGrant(g, sums, j.resumed)
		}
	}
	return c
}

// addGrant adds a grant of the open period's allowance.
func (c *Changes) addGrant(g *grant, sums *grantSums, resumed *checkpoint) {
	c.Ends = later(c.Ends, g.expiresAt)
	if sums == nil {
		c.Complete = false
		return
	}
	if resumed != nil {
		switch before := resumed.State.Grants[g.id]; {
		case before != nil && before.Begins == 0 && before.Given <= 0: // an earlier version wrote the checkpoint
			c.Complete = false
		case before == nil && g.createdAt.UnixMicro() <= resumed.At: // it had ended before the checkpoint
			c.Complete = false
		}
	}
	c.Given += sums.Given
	c.Left += sums.Left
	c.Whole = c.Whole || sums.Kind == "grant"
}

// renewed reports whether a change of terms inside the open period gave the allowance as a whole by this grant.
func (g *grantSums) renewed(b *balance) bool {
	return g.Kind == "grant" && g.Begins > b.start.UnixMicro() && !strings.HasPrefix(g.Operation, "§allowance/")
}

// readPastOverage reads the overage that counts in open periods which began with a change of the interval. Each balance
// has a statement of its own, because Citus joins entries of one tenant only.
func (s *stored) readPastOverage(ctx context.Context, tx pgx.Tx, sql string) error {
	s.past = map[Key]*PastOverage{}
	out := &pgx.Batch{}
	for _, k := range s.order {
		b := s.balances[k]
		if b == nil || !b.knows() || b.carriedFrom.Unix() == 0 {
			continue
		}
		args := []any{k.Tenant, k.Meter, k.Subject, b.carriedFrom, b.start, b.forgivenSeq}
		out.Queue(sql, args...).QueryRow(func(row pgx.Row) error {
			p := &PastOverage{}
			s.past[k] = p
			return row.Scan(&p.Units, &p.Paid, &p.RefundedBefore, &p.RefundedSince)
		})
	}
	if out.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, out).Close(); err != nil {
		return fmt.Errorf("read earlier overage: %w", err)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
