package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// paidFor names a period of another meter of the tenant, in which units were paid for, or a quarter of an hour of it.
type paidFor struct {
	meter           string
	period, quarter int64 // their starts, microseconds since 1970; quarter 0: the whole period
}

// newestPaid has the units of the newest period of a meter that were paid for, and those of its newest quarter.
type newestPaid struct {
	Period    int64 `json:"period"`  // its start, microseconds since 1970
	Quarter   int64 `json:"quarter"` // likewise
	Units     int64 `json:"units"`
	InQuarter int64 `json:"in_quarter"`
}

// has reports whether n says that these units were paid for.
func (n newestPaid) has(of paidFor, units int64) bool {
	if of.quarter == 0 {
		return n.Period == of.period && n.Units == units
	}
	return n.Period == of.period && n.Quarter == of.quarter && n.InQuarter == units
}

const quarterMicros = 15 * 60 * 1_000_000

// whole returns the key of the whole period.
func (of paidFor) whole() paidFor { return paidFor{of.meter, of.period, 0} }

// paidMember is the member that each counted payment has in an entry's detail. The payments of versions that counted
// none do not have it.
var paidMember = []byte(`"period"`)

// addPayment adds the units that the entry paid for, if it is an entry of a meter that pays for another one.
func (j *journal) addPayment(e *entry) {
	if j.paid == nil || !bytes.Contains(e.detail, paidMember) {
		return
	}
	type payment struct {
		For    string    `json:"for"`
		Units  int64     `json:"units"`
		Period time.Time `json:"period"`
	}
	var d struct {
		payment

		Overflow payment `json:"overflow"`
	}
	if kind := string(e.kind); kind != "debit" && kind != "capture" || json.Unmarshal(e.detail, &d) != nil {
		return
	}
	for _, p := range [...]payment{d.payment, d.Overflow} {
		if p.Units <= 0 || p.Period.IsZero() {
			continue
		}
		k := paidFor{p.For, p.Period.UnixMicro(), e.createdAt - e.createdAt%quarterMicros}
		j.paid[k] = saturated(j.paid[k], p.Units)
		j.paid[k.whole()] = saturated(j.paid[k.whole()], p.Units)
	}
}

// saturated returns the sum of two amounts, at most the largest int64.
func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// newestPaid returns the state of a checkpoint. Payments never name an earlier period or an earlier quarter of an hour
// again, so the newest ones of each meter suffice.
func (j *journal) newestPaid() map[string]newestPaid {
	if j.paid == nil {
		return nil
	}
	out := map[string]newestPaid{}
	for k, units := range j.paid {
		have := out[k.meter]
		if k.quarter > 0 && (k.period > have.Period || k.period == have.Period && k.quarter > have.Quarter) {
			out[k.meter] = newestPaid{k.period, k.quarter, j.paid[k.whole()], units}
		}
	}
	return out
}

// resumePaid begins with the units of a checkpoint. An archived checkpoint of a version that did not count has none.
func (j *journal) resumePaid(c *checkpoint) {
	if c.State.Paid == nil && !c.Archived {
		j.paid = nil
	}
	for meter, n := range c.State.Paid {
		j.paid[paidFor{meter, n.Period, 0}], j.paid[paidFor{meter, n.Period, n.Quarter}] = n.Units, n.InQuarter
	}
}

// comparePaid compares the stored units that a balance paid for with those of its entries. After a checkpoint, what
// ended before it is not compared, and rows of which the checkpoint has all entries may have been archived.
func (s *stored) comparePaid(k Key, j *journal, r *Report) {
	if j.paid == nil {
		return
	}
	before := map[string]newestPaid{}
	if j.resumed != nil {
		before = j.resumed.State.Paid
	}
	differ := func(of paidFor, want, got int64) {
		at := "period " + time.UnixMicro(of.period).UTC().Format(time.RFC3339)
		if of.quarter > 0 {
			at += " from " + time.UnixMicro(of.quarter).UTC().Format(time.RFC3339) + " on"
		}
		r.equal(k, "units of "+of.meter+" paid for in "+at, want, got)
	}
	for of, want := range j.paid {
		got, found := s.paid[k][of]
		if found || !before[of.meter].has(of, want) {
			differ(of, want, got)
		}
	}
	for of, got := range s.paid[k] {
		b := before[of.meter]
		later := of.period > b.Period || of.period == b.Period && of.quarter > b.Quarter
		if _, known := j.paid[of]; later && !known {
			differ(of, 0, got)
		}
	}
}

func (s *stored) scanPaid(rows pgx.Rows) error {
	var k Key
	var of paidFor
	var start, quarter time.Time
	var units int64
	_, err := pgx.ForEachRow(rows, []any{&k.Tenant, &k.Meter, &of.meter, &start, &quarter, &units}, func() error {
		if s.paid[k] == nil {
			s.paid[k] = map[paidFor]int64{}
		}
		of.period, of.quarter = start.UnixMicro(), quarter.UnixMicro()
		s.paid[k][of] = units
		return nil
	})
	return err
}
