package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// isAgreement reports whether a sealed head is that of a tenant's terms or of a plan. A balance has tenant and meter.
func (k *Key) isAgreement() bool { return k.Tenant == "" || k.Meter == "" }

// writeAgreements writes the heads of the agreements that have changed since they were sealed.
func (r *sealRun) writeAgreements(ctx context.Context, end time.Time) error {
	h := &hasher{}
	list := &agreements{Auditor: r.Auditor, size: sealPage}
	list.wants = func(g *agreement) bool {
		stored, valid := decodeAgreed(g.stored)
		changed := !valid || stored.Until < list.state.start || !stored.sameRows(&g.sealed)
		return changed && (g.day.IsZero() || g.day.Before(r.day))
	}
	return list.each(ctx, "", func(page []*agreement) error {
		report := newReport()
		if err := list.compare(ctx, page, h, report, false); err != nil {
			return err
		}
		if report.Count > 0 {
			return fmt.Errorf("%s; nothing was sealed: quotasvc verify says more", report.Differences[0])
		}
		var keys []Key
		var heads [][]byte
		for _, g := range page {
			head, err := g.headUntil(h, end)
			if err != nil {
				return err
			}
			if head.Rows > 0 && !head.sameRows(&g.sealed) {
				keys, heads = append(keys, g.Key), append(heads, head.encode())
			}
		}
		return r.insertHeads(ctx, keys, heads)
	})
}

// headUntil returns the chain of the rows in force that took effect before an instant.
func (g *agreement) headUntil(h *hasher, end time.Time) (c agreedChain, err error) {
	for i := range g.rows {
		if row := &g.rows[i]; row.at < end.UnixMicro() && row.at != g.pending {
			if err := c.add(h, row); err != nil {
				return c, fmt.Errorf("%s: %w", g.name(), err)
			}
		}
	}
	return c, nil
}

// compareAgreed compares sealed heads of agreements, in the order of their keys and days, with the rows.
func (c *sealCheck) compareAgreed(ctx context.Context, heads []sealedHead) error {
	if len(heads) == 0 {
		return nil
	}
	list := &agreements{Auditor: c.Auditor}
	of := map[Key]*agreement{}
	var terms, plans []*agreement
	for i := range heads {
		k := heads[i].Key
		if of[k] != nil {
			continue
		}
		g := &agreement{Key: k}
		if of[k] = g; k.Tenant == "" {
			plans = append(plans, g)
		} else {
			terms = append(terms, g)
		}
	}
	err := c.inSnapshot(ctx, chunkTimeout, func(ctx context.Context, tx pgx.Tx) error {
		if err := list.readRows(ctx, tx, plans, "AgreedVersions"); err != nil {
			return err
		}
		return list.readRows(ctx, tx, terms, "AgreedTerms")
	})
	if err != nil {
		return err
	}
	h := &hasher{}
	reported := map[Key]bool{} // later heads of these agreements differ for the same reason
	for i := range heads {
		head := &heads[i]
		if reported[head.Key] {
			continue
		}
		differs, err := c.compareAgreedHead(h, of[head.Key], head)
		if err != nil {
			return err
		}
		reported[head.Key] = differs
	}
	return nil
}

// compareAgreedHead compares one sealed head of an agreement with its rows.
func (c *sealCheck) compareAgreedHead(h *hasher, g *agreement, head *sealedHead) (differs bool, err error) {
	sealed, valid := decodeAgreed(head.chain)
	if !valid {
		c.report.add("%s: the head that was sealed on %s cannot be read", g.name(), date(head.day))
		return true, nil
	}
	now, err := g.headUntil(h, time.UnixMicro(sealed.Until+1))
	if err != nil || now.sameRows(&sealed) {
		return false, err
	}
	rows := "terms"
	if g.Tenant == "" {
		rows = "versions"
	}
	was := "they have changed"
	if now.Rows != sealed.Rows {
		was = fmt.Sprintf("of the time until then, the database has %d", now.Rows)
	}
	c.report.add("%s: %d %s were sealed on %s; %s", g.name(), sealed.Rows, rows, date(head.day), was)
	return true, nil
}
