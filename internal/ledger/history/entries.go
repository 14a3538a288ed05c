package history

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
)

// Order is the order of a list.
type Order string

// The orders of entries. In both orders, the entries of a balance are together.
const (
	OldestFirst Order = "asc"  // meter, subject, seq
	NewestFirst Order = "desc" // the reverse order
)

// EntryQuery selects entries of a tenant.
type EntryQuery struct {
	Tenant   string
	Meter    string           // empty: all
	Subject  string           // empty: all; else entries of its balances, and of requests that named this subject
	Kind     ledger.EntryKind // one of Kinds; empty: all
	From, To time.Time        // [From, To) of created_at; zero: no bound
	Order    Order            // empty: OldestFirst
	Limit    int              // 1..pg.PageMax
	Cursor   string           // NextCursor of the page before; empty: the first page
}

// EntryPage is a page of entries. NextCursor is empty on the last page.
type EntryPage struct {
	Items      []ledger.Entry
	NextCursor string
	// ArchivedBefore is set if the query has no From and older entries were archived: the list begins at this
	// instant. Zero: no entries were archived.
	ArchivedBefore time.Time
}

// position is the position of an entry in the order of a list.
type position struct {
	meter, subject string
	seq            int64
}

const (
	// afterIDs sorts after every meter and subject, because ids do not contain this character.
	afterIDs = "~"
	// balancesMax is the number of balances that a list looks up at a time.
	balancesMax = 100
	// backwardsMark is the end of the cursors of lists with the newest entry first, so that these cursors cannot be
	// used for the other order.
	backwardsMark = "-"
)

// Entries returns a page of a tenant's journal.
func (r *Reader) Entries(ctx context.Context, ask EntryQuery) (EntryPage, error) {
	start, err := ask.validate()
	if err != nil {
		return EntryPage{}, err
	}
	page, err := reported(ctx, r, func(ctx context.Context, q *report) (EntryPage, error) {
		if err := r.ledger.MustExist(ctx, ask.Tenant); err != nil {
			return EntryPage{}, err
		}
		items, err := q.entries(ctx, &ask, start)
		if err != nil {
			return EntryPage{}, err
		}
		page := EntryPage{Items: items}
		if len(items) > ask.Limit {
			page.Items = items[:ask.Limit]
			page.NextCursor = ask.cursor(&items[ask.Limit-1])
		}
		return page, nil
	})
	if err != nil || !ask.From.IsZero() {
		return unlessArchived(ctx, r, ask.Tenant, "from", ask.From, page, err)
	}
	page.ArchivedBefore, err = r.ledger.Oldest(ctx, ask.Tenant)
	return page, err
}

func (ask *EntryQuery) validate() (start position, err error) {
	if e := ledger.FirstOf(ledger.ValidateName("tenant", ask.Tenant), ledger.ValidateSubject(ask.Subject), pg.ValidLimit(ask.Limit), ledger.ValidateInstant("from", ask.From), ledger.ValidateInstant("to", ask.To)); e != nil {
		return start, e
	}
	if ask.Meter != "" && !bound.ID(ask.Meter) {
		return start, ledger.ValidateID("meter", ask.Meter)
	}
	if ask.Kind != "" && !slices.Contains(Kinds(), ask.Kind) {
		return start, errcode.Errorf(errcode.InvalidArgument, "kind", "must be one of: %s", strings.Join(kindNames(), ", "))
	}
	ask.Order = cmp.Or(ask.Order, OldestFirst)
	if ask.Order != OldestFirst && ask.Order != NewestFirst {
		return start, errcode.Errorf(errcode.InvalidArgument, "order", "must be one of: asc, desc")
	}
	if !ask.From.IsZero() && !ask.To.IsZero() && !ask.To.After(ask.From) {
		return start, errcode.Errorf(errcode.InvalidArgument, "to", "must be later than from")
	}
	switch {
	case ask.Cursor != "":
		return ask.openCursor()
	case ask.Order == NewestFirst:
		return position{afterIDs, afterIDs, math.MaxInt64}, nil
	default:
		return position{}, nil
	}
}

// cursor returns the cursor of the page after e.
func (ask *EntryQuery) cursor(e *ledger.Entry) string {
	seq := strconv.FormatInt(e.Seq, 10)
	if ask.Order == NewestFirst {
		seq += backwardsMark
	}
	return pg.SealCursor(e.Meter, e.Subject, seq)
}

func (ask *EntryQuery) openCursor() (start position, err error) {
	parts, err := pg.OpenCursor(ask.Cursor, 3)
	if err != nil {
		return start, err
	}
	text, backwards := strings.CutSuffix(parts[2], backwardsMark)
	if start.seq, err = strconv.ParseInt(text, 10, 64); err != nil || start.seq < 1 {
		return start, errcode.Errorf(errcode.InvalidArgument, "cursor", "unknown cursor")
	}
	start.meter, start.subject = parts[0], parts[1]
	if ask.Meter != "" && start.meter != ask.Meter {
		return start, errcode.Errorf(errcode.InvalidArgument, "cursor", "belongs to another list, not to this one of meter %q", ask.Meter)
	}
	if backwards != (ask.Order == NewestFirst) {
		return start, errcode.Errorf(errcode.InvalidArgument, "cursor", "belongs to the list in the other order, not to order=%s", ask.Order)
	}
	return start, nil
}

// entries returns the entries of a page, and one more entry if another page follows.
func (q *report) entries(ctx context.Context, ask *EntryQuery, start position) ([]ledger.Entry, error) {
	kinds := stored(ask.Kind)
	if len(kinds) == 1 {
		return q.entriesOfKind(ctx, ask, start)
	}
	items := []ledger.Entry{}
	for _, kind := range kinds { // one statement for each kind, because their index begins with the kind
		one := *ask
		one.Kind = kind
		more, err := q.entriesOfKind(ctx, &one, start)
		if err != nil {
			return nil, err
		}
		items = append(items, more...)
	}
	inOrder(items, ask.Order)
	return items[:min(len(items), ask.Limit+1)], nil
}

// entriesOfKind returns the same as entries, for one kind of the ledger or for all kinds.
func (q *report) entriesOfKind(ctx context.Context, ask *EntryQuery, start position) ([]ledger.Entry, error) {
	switch {
	case ask.Subject != "" || ask.bounded() && !ask.rare():
		return q.entriesByBalance(ctx, ask, start)
	case ask.rare():
		from, to := ask.times()
		return q.collect(ctx, ask, "EntriesOfKind", ask.Tenant, start.meter, start.subject, start.seq, ask.Kind, ask.Meter,
			ledger.MonthOf(from).First(), ledger.MonthOf(to).First(), from, to, ask.Limit+1)
	case ask.Meter != "":
		return q.collect(ctx, ask, "EntriesOfMeter", ask.Tenant, ask.Meter, start.subject, start.seq, ask.Kind, q.lastMonth(), ask.Limit+1)
	default:
		return q.collect(ctx, ask, "EntriesOfTenant", ask.Tenant, start.meter, start.subject, start.seq, ask.Kind, q.lastMonth(), ask.Limit+1)
	}
}

func (ask *EntryQuery) bounded() bool { return !ask.From.IsZero() || !ask.To.IsZero() }

// rare reports whether there is an index for the requested kind.
func (ask *EntryQuery) rare() bool { return ask.Kind != "" && ask.Kind != ledger.EntryDebit }

func (ask *EntryQuery) times() (from, to time.Time) {
	from, to = ask.From, ask.To
	if from.IsZero() {
		from = period.Earliest
	}
	if to.IsZero() {
		to = period.Latest
	}
	return from, to
}

// entriesByBalance reads the balances in the list's order, and the entries of each balance between the bounds in
// time.
func (q *report) entriesByBalance(ctx context.Context, ask *EntryQuery, start position) ([]ledger.Entry, error) {
	items, next := []ledger.Entry{}, start
	if ask.Meter != "" {
		next.meter = ask.Meter
	}
	for first := true; ; first = false {
		balances, err := q.balancesFrom(ctx, ask, next)
		if err != nil {
			return nil, err
		}
		for _, b := range balances {
			at := b.meter == next.meter && b.subject == next.subject
			if at && !first {
				continue // it was the last balance of the previous look-up
			}
			s := span{0, b.seq}
			if at {
				s = ask.following(s, start.seq)
			}
			more, err := q.entriesOf(ctx, ask, ledger.BalanceKey{Tenant: ask.Tenant, Meter: b.meter, Subject: b.subject}, s, ask.Limit+1-len(items))
			if err != nil {
				return nil, err
			}
			if items = append(items, more...); len(items) > ask.Limit {
				return items, nil
			}
		}
		if len(balances) < balancesMax {
			return items, nil
		}
		next = balances[len(balances)-1]
	}
}

// following returns the part of s that follows seq in the list's order.
func (ask *EntryQuery) following(s span, seq int64) span {
	if ask.Order == NewestFirst {
		return span{s.after, min(s.last, seq-1)}
	}
	return span{max(s.after, seq), s.last}
}

func (q *report) balancesFrom(ctx context.Context, ask *EntryQuery, from position) ([]position, error) {
	oldest, _ := ask.times()
	rows, _ := q.pool.Query(ctx, q.ordered("BalancesInOrder", ask.Order), ask.Tenant, from.meter, from.subject, oldest, ask.Meter, ask.Subject, balancesMax)
	var out []position
	var b position
	_, err := pgx.ForEachRow(rows, []any{&b.meter, &b.subject, &b.seq}, func() error {
		out = append(out, b)
		return nil
	})
	if err != nil {
		return nil, Failed("list balances", err)
	}
	return out, nil
}

// entriesOf returns up to n entries of one balance.
func (q *report) entriesOf(ctx context.Context, ask *EntryQuery, k ledger.BalanceKey, s span, n int) ([]ledger.Entry, error) {
	if ask.bounded() {
		var err error
		from, to := ask.times()
		if s, err = q.between(ctx, k, s, from, to); err != nil {
			return nil, err
		}
	}
	if s.last <= s.after {
		return nil, nil
	}
	args := []any{k.Tenant, k.Meter, k.Subject, s.after, s.last, ask.Kind, q.lastMonth(), n}
	switch {
	case ask.Subject != "" && ask.Subject != k.Subject:
		return q.collect(ctx, ask, "EntriesOfBalanceNaming", append(args, ask.Subject)...)
	case ask.rare():
		return q.collect(ctx, ask, "EntriesOfBalanceAndKind", args...)
	default:
		return q.collect(ctx, ask, "EntriesOfBalance", args...)
	}
}

func (q *report) collect(ctx context.Context, ask *EntryQuery, statement string, args ...any) ([]ledger.Entry, error) {
	rows, _ := q.pool.Query(ctx, q.ordered(statement, ask.Order), args...)
	items, err := pg.CollectEntries(rows)
	if err != nil {
		return nil, Failed("read entries", err)
	}
	return items, nil
}

// ordered returns the SQL of a statement of sql/entries.sql for an order.
func (r *Reader) ordered(statement string, o Order) string {
	if o == NewestFirst {
		return strings.NewReplacer(">=/*<=*/", "<=", ">/*<*/", "<", "/*DESC*/", " DESC").Replace(r.sql[statement])
	}
	return r.sql[statement]
}

func kindNames() (names []string) {
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return names
}
