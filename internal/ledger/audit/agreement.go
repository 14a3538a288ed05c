package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// agreementsPage is the number of tenants whose terms one transaction reads.
const agreementsPage = 500

// agreement is a history with a hash chain of its own: the terms of a tenant, or the versions of a plan. Its key has
// either the tenant, or the plan in place of the meter. In the tree of a seal, it has the same key.
type agreement struct {
	Key

	pending int64 // the instant until which terms wait; 0: none wait
	stored  []byte
	sealed  agreedChain // the newest sealed head
	day     time.Time   // day of that head; zero: none
	rows    []agreedRow
}

// agreedRow is a row of terms, or a version of a plan with its allowances.
type agreedRow struct {
	at       int64 // the instant at which it takes effect
	document string
}

// agreedChain is the chain of an agreement.
type agreedChain struct {
	Rows, Until int64 // it covers so many rows, and all rows that take effect until then
	Head        [sha256.Size]byte
	Waits       [sha256.Size]byte // hash of the terms that wait; zero: none wait
}

// decodeAgreed decodes a stored chain: Rows and Until, 8 bytes each, big endian, Head, and Waits if terms wait.
func decodeAgreed(stored []byte) (c agreedChain, ok bool) {
	if len(stored) != chainBytes && len(stored) != chainBytes+sha256.Size {
		return c, false
	}
	c.Rows, c.Until = int64(binary.BigEndian.Uint64(stored)), int64(binary.BigEndian.Uint64(stored[8:]))
	rest := stored[16:]
	rest = rest[copy(c.Head[:], rest):]
	copy(c.Waits[:], rest)
	return c, true
}

func (c *agreedChain) encode() []byte {
	out := binary.BigEndian.AppendUint64(nil, uint64(c.Rows))
	out = append(binary.BigEndian.AppendUint64(out, uint64(c.Until)), c.Head[:]...)
	if c.Waits != [sha256.Size]byte{} {
		out = append(out, c.Waits[:]...)
	}
	return out
}

// sameRows reports whether two chains cover the same rows.
func (c *agreedChain) sameRows(d *agreedChain) bool { return c.Rows == d.Rows && c.Head == d.Head }

// add extends the chain by a row.
func (c *agreedChain) add(h *hasher, row *agreedRow) (err error) {
	c.Head, err = h.row(c.Head, row.document)
	c.Rows, c.Until = c.Rows+1, max(c.Until, row.at)
	return err
}

// row returns the hash of a head, the version of the format, and a row.
func (h *hasher) row(head [sha256.Size]byte, document string) ([sha256.Size]byte, error) {
	form, err := h.documents.canonical([]byte(document))
	if err != nil {
		return head, err
	}
	h.buf = text(append(append(h.buf[:0], head[:]...), 1), form)
	return sha256.Sum256(h.buf), nil
}

// name returns the agreement's name for people.
func (g *agreement) name() string {
	if g.Tenant == "" {
		return "versions of plan " + g.Meter
	}
	return "terms of tenant " + g.Tenant
}

// add reports a difference. {rows} stands for the name of the rows.
func (g *agreement) add(r *Report, what string, want, got any) {
	if g.Tenant == "" {
		r.add(Key{}, "plan "+g.Meter+": "+strings.ReplaceAll(what, "{rows}", "versions"), want, got)
		return
	}
	r.add(Key{Tenant: g.Tenant}, strings.ReplaceAll(what, "{rows}", "terms"), want, got)
}

// agreedState is the state of the database that is needed to compare agreements.
type agreedState struct {
	start int64 // chains that end earlier may miss rows of the version before
	now   int64
}

// compare compares the rows with the stored chain. If the chain may miss rows of the version before, compare returns
// the chain with these rows, to be stored. Otherwise it returns nil.
func (g *agreement) compare(h *hasher, s *agreedState, r *Report) (*agreedChain, error) {
	stored, valid := decodeAgreed(g.stored)
	if g.stored != nil && !valid {
		g.add(r, "hash chain of the {rows}", "48 or 80 bytes", len(g.stored))
		return nil, nil
	}
	open := g.stored == nil || stored.Until < s.start
	covered, whole := agreedChain{}, agreedChain{}
	waits := false
	var beyond []int64
	for i := range g.rows {
		row := &g.rows[i]
		var err error
		switch {
		case g.pending != 0 && row.at == g.pending:
			waits = true
			whole.Waits, err = h.row(whole.Waits, row.document)
		case g.stored != nil && row.at <= stored.Until:
			err = covered.add(h, row)
			whole.Rows, whole.Until, whole.Head = covered.Rows, stored.Until, covered.Head
		default:
			beyond = append(beyond, row.at)
			err = whole.add(h, row)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name(), err)
		}
	}
	switch {
	case g.stored == nil:
	case covered.Rows != stored.Rows:
		g.add(r, "number of {rows}", stored.Rows, covered.Rows)
		return nil, nil
	case covered.Head != stored.Head:
		g.add(r, "hash chain of the {rows}", hex.EncodeToString(stored.Head[:]), hex.EncodeToString(covered.Head[:]))
		return nil, nil
	}
	if !open {
		for _, at := range beyond {
			g.add(r, "{rows} since "+instant(at), "in the hash chain", "outside of it")
		}
		g.compareWaits(waits, &stored, &whole, r)
		return nil, nil
	}
	if s.now >= s.start && (g.pending == 0 || g.pending > s.start) {
		whole.Until = max(whole.Until, s.start) // from now on the chain covers all
	}
	if whole.Rows == 0 || whole == stored {
		return nil, nil
	}
	return &whole, nil
}

// compareWaits compares the terms that wait with their stored hash.
func (g *agreement) compareWaits(found bool, stored, whole *agreedChain, r *Report) {
	shown := func(hash [sha256.Size]byte) string {
		if hash == [sha256.Size]byte{} {
			return "none"
		}
		return hex.EncodeToString(hash[:])
	}
	switch {
	case stored.Waits != whole.Waits:
		g.add(r, "{rows} that wait", shown(stored.Waits), shown(whole.Waits))
	case g.pending != 0 && !found:
		g.add(r, "{rows} that wait", "until "+instant(g.pending), "none")
	}
}

// agreements reads agreements in pages.
type agreements struct {
	*Auditor

	state agreedState
	size  int
	wants func(*agreement) bool // selects the agreements to read by their stored chains and sealed heads; nil: all
}

// compareAgreements compares the terms of a tenant, or the plans and the terms of all tenants, with their chains.
func (p *pass) compareAgreements(ctx context.Context) error {
	list := &agreements{Auditor: p.auditor, size: agreementsPage}
	err := list.each(ctx, p.options.Tenant, func(page []*agreement) error {
		return list.compare(ctx, page, &p.hasher, p.report, p.options.ReadOnly)
	})
	if err == nil && p.options.Tenant == "" {
		err = list.findOrphans(ctx, p.report)
	}
	if err != nil {
		return fmt.Errorf("verify terms: %w", err)
	}
	return nil
}

// findOrphans reports chains of tenants that do not exist.
func (l *agreements) findOrphans(ctx context.Context, r *Report) error {
	return l.inSnapshot(ctx, orphansTimeout, func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, l.sql["AgreedOrphans"])
		var k Key
		var chain []byte
		_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &chain}, func() error {
			r.add(Key{Tenant: k.Tenant}, "tenant of an existing hash chain of terms", "a row", "none")
			return nil
		})
		return err
	})
}

// compare compares a page with its chains. It writes the chains that have begun or that lack rows of the version
// before, unless it may only read.
func (l *agreements) compare(ctx context.Context, page []*agreement, h *hasher, r *Report, readOnly bool) error {
	b := &pgx.Batch{}
	for _, g := range page {
		begun, err := g.compare(h, &l.state, r)
		if err != nil {
			return err
		}
		if begun != nil && !readOnly {
			b.Queue(l.sql["WriteTermsChain"], g.Tenant, g.Meter, begun.encode(), g.stored)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	err := l.pool.SendBatch(ctx, b).Close()
	if err != nil && ctx.Err() == nil && unreadable(err) {
		return nil // a change of the catalogue has the lock: the next pass writes them
	}
	return err
}

// each calls the function `do` with the terms of a tenant, or with the plans and the terms of all tenants.
func (l *agreements) each(ctx context.Context, tenant string, do func([]*agreement) error) error {
	if err := l.pool.QueryRow(ctx, l.sql["AgreedState"]).Scan(&l.state.start, &l.state.now); err != nil {
		return err
	}
	if tenant == "" {
		plans, err := l.plans(ctx)
		if err != nil {
			return err
		}
		for keys := range slices.Chunk(plans, l.size) {
			page, err := l.ofPlans(ctx, keys)
			if err == nil {
				err = do(page)
			}
			if err != nil {
				return err
			}
		}
	}
	for after := ""; ; {
		page, last, err := l.ofTenants(ctx, after, tenant)
		if err == nil {
			err = do(page)
		}
		if err != nil || last == after {
			return err
		}
		after = last
	}
}

// plans returns the ids of all plans, also of those of which only the chain is left.
func (l *agreements) plans(ctx context.Context) ([]string, error) {
	ids := map[string]bool{}
	err := l.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, l.sql["AgreedPlans"])
		var tenant, plan string
		var chain []byte
		if _, err := pgx.ForEachRow(rows, []any{&plan}, func() error { ids[plan] = true; return nil }); err != nil {
			return err
		}
		rows, _ = tx.Query(ctx, l.sql["AgreedChains"], []string{""})
		_, err := pgx.ForEachRow(rows, []any{&tenant, &plan, &chain}, func() error { ids[plan] = true; return nil })
		return err
	})
	return sorted(ids), err
}

// ofPlans reads the versions of plans.
func (l *agreements) ofPlans(ctx context.Context, plans []string) (page []*agreement, err error) {
	for _, id := range plans {
		page = append(page, &agreement{Key: Key{Meter: id}})
	}
	err = l.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
		page, err = l.read(ctx, tx, page, []string{""}, plans, "AgreedVersions")
		return err
	})
	return page, err
}

// ofTenants reads the terms of the next tenants after a tenant. last is the last of these tenants.
func (l *agreements) ofTenants(ctx context.Context, after, only string) (page []*agreement, last string, err error) {
	err = l.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
		last = after
		var tenants []string
		var pending int64
		rows, _ := tx.Query(ctx, l.sql["AgreedTenants"], after, l.size, only)
		_, err := pgx.ForEachRow(rows, []any{&last, &pending}, func() error {
			page, tenants = append(page, &agreement{Key: Key{Tenant: last}, pending: pending}), append(tenants, last)
			return nil
		})
		if err == nil {
			page, err = l.read(ctx, tx, page, tenants, []string{""}, "AgreedTerms")
		}
		return err
	})
	return page, last, err
}

// read reads the chains and rows of a page of agreements, and returns those that are wanted.
func (l *agreements) read(
	ctx context.Context, tx pgx.Tx, page []*agreement, tenants, plans []string, statement string,
) ([]*agreement, error) {
	of := make(map[Key]*agreement, len(page))
	for _, g := range page {
		of[g.Key] = g
	}
	var k Key
	var chain []byte
	var day time.Time
	rows, _ := tx.Query(ctx, l.sql["AgreedChains"], tenants)
	_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &chain}, func() error {
		if g := of[k]; g != nil {
			g.stored = chain
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if l.wants != nil {
		rows, _ := tx.Query(ctx, l.sql["AgreedHeads"], tenants, plans)
		_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &day, &chain}, func() error {
			g := of[k]
			g.day = day
			g.sealed, _ = decodeAgreed(chain)
			return nil
		})
		if err != nil {
			return nil, err
		}
		page = slices.DeleteFunc(page, func(g *agreement) bool { return !l.wants(g) })
	}
	return page, l.readRows(ctx, tx, page, statement)
}

// readRows reads the rows of agreements of one kind.
func (l *agreements) readRows(ctx context.Context, tx pgx.Tx, page []*agreement, statement string) error {
	if len(page) == 0 {
		return nil
	}
	ids := make([]string, len(page))
	of := make(map[Key]*agreement, len(page))
	for i, g := range page {
		ids[i], of[g.Key] = g.Tenant+g.Meter, g
	}
	var k Key
	var row agreedRow
	rows, _ := tx.Query(ctx, l.sql[statement], ids)
	_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &row.at, &row.document}, func() error {
		of[k].rows = append(of[k].rows, row)
		return nil
	})
	return err
}
