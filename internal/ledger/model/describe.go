package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// PeriodText returns a closed period as text: its plan, start, end and the amounts n. Both implementations must give
// the same text.
func PeriodText(plan string, start, end time.Time, n [11]int64) string {
	return fmt.Sprintf("%s %s-%s opening %d granted %d amended %d refunded %d used %d expired %d adjusted %d overage %d overflow %d held %d closing %d",
		plan, start.Format(time.RFC3339Nano), end.Format(time.RFC3339Nano), n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10])
}

// describe returns the balance of k in the format of DescribeBook.
func (m *Model) describe(k ledger.BalanceKey) string {
	b := m.touch(k)
	var left []string
	for _, g := range b.grants {
		if g.state == "active" && g.left > 0 {
			left = append(left, fmt.Sprintf("%s:%d:%d", g.source, g.left, g.held))
		}
	}
	slices.Sort(left)
	return fmt.Sprintf("%s %s-%s carried %d opening %d granted %d amended %d refunded %d used %d expired %d adjusted %d held %d overage %d overflow %d remaining %d %s",
		b.plan, b.start.Format(time.RFC3339Nano), b.end.Format(time.RFC3339Nano), b.carried, b.opening, b.granted, b.amended, b.refunded, b.used, b.expired,
		b.adjusted, m.held(k), b.overage, b.overflow, b.remaining(), strings.Join(left, " "))
}

// DescribeBook returns a balance of the ledger as text: its period, sums and open grants.
func DescribeBook(b *ledger.Book) string {
	var left []string
	for _, g := range b.Grants {
		if g.Status == ledger.GrantActive && g.Remaining > 0 {
			left = append(left, fmt.Sprintf("%s:%d:%d", g.Source, g.Remaining, g.Held))
		}
	}
	slices.Sort(left)
	return fmt.Sprintf("%s %s-%s carried %d opening %d granted %d amended %d refunded %d used %d expired %d adjusted %d held %d overage %d overflow %d remaining %d %s",
		b.Plan, b.Start.Format(time.RFC3339Nano), b.End.Format(time.RFC3339Nano), b.Carried, b.Opening, b.Granted, b.Amended, b.Refunded, b.Used, b.Expired,
		b.Adjusted, b.Held, b.Overage, b.Overflow.In(b.Start), b.Remaining(), strings.Join(left, " "))
}

// Describe returns the balances of keys, one line each.
func (m *Model) Describe(keys []ledger.BalanceKey) string {
	var out strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&out, "%v %s\n", k, m.describe(k))
	}
	return out.String()
}

// periodText returns c in the format of PeriodText.
func (s *Memory) periodText(c *ledger.PeriodRow) string {
	return PeriodText(c.Plan, c.Start, c.End, [...]int64{c.Opening, c.Granted, c.Amended, c.Refunded, c.Used, c.Expired, c.Adjusted, c.Overage, s.overflowOf(c.BalanceKey, c.Start), c.Held, c.Closing})
}
