package ledger

// Mode says what happens when a debit asks for more than there is.
type Mode string

// The modes of a debit.
const (
	ModeNormal     Mode = "normal"      // all or nothing
	ModeBestEffort Mode = "best_effort" // charge what there is, report the rest as shortfall
	ModeDrain      Mode = "drain"       // the work is done already: charge what there is, record the rest as overage
)

// SourceOverage marks draws that no grant paid.
const SourceOverage Source = "overage"

// well is where one item can draw from, in this order: its own balance's grants, the overflow meter's grants at their
// price, overage up to its cap. Where the plan caps subjects, the subject's balance bounds the sum and is charged with it.
type well struct {
	own      *book
	overflow *book // nil = none, or not needed
	price    int64 // units of the overflow meter for one unit of own's meter
	subject  *book // nil = no cap
	overage  int64 // how much overage there is room for
}

// shares is how an item's amount is split over a well.
type shares struct {
	own      int64 // from own grants
	overflow int64 // units of the item's meter that the overflow meter pays for
	cost     int64 // what it pays: overflow x price
	overage  int64
}

// units is what is charged of the item's meter.
func (s shares) units() int64 { return s.own + s.overflow + s.overage }

// split divides amount as far as it goes. A price is a whole number, so costs are exact; how many units the overflow meter
// can still pay for is rounded down.
func (w *well) split(amount int64) shares {
	var s shares
	if w.subject != nil {
		amount = min(amount, w.subject.remaining())
	}
	s.own = min(amount, w.own.remaining())
	rest := amount - s.own
	if w.overflow != nil {
		s.overflow = min(rest, w.overflow.remaining()/w.price)
		s.cost = s.overflow * w.price
		rest -= s.overflow
	}
	s.overage = min(rest, w.overage)
	return s
}

// available is the most that could be charged now.
func (w *well) available() int64 { return w.split(MaxAmount).units() }

// wellOf finds where an item can draw from. The overflow meter is taken in only when amount is more than the balance's own
// grants hold: otherwise its row need not be locked.
func (m *machine) wellOf(tenant, meter, subject string, amount int64, field string) (*well, *Error, error) {
	own, failed := m.book(key{tenant, meter, ""}, field)
	if failed != nil {
		return nil, failed, nil
	}
	w := &well{own: own}
	if own.plan == "" {
		return w, nil, nil
	}
	if own.terms == nil {
		return nil, nil, errNotLoaded
	}
	t := own.terms
	capped, overflows := subject != "" && t.perSubject != nil, t.overflowMeter != "" && amount > own.remaining()
	var keys []key
	if capped {
		keys = append(keys, key{tenant, meter, subject})
	}
	if overflows {
		keys = append(keys, key{tenant, t.overflowMeter, ""})
	}
	if err := m.needKeys(keys...); err != nil {
		return nil, nil, err
	}
	if capped {
		if w.subject, failed = m.book(keys[0], field); failed != nil {
			return nil, failed, nil
		}
	}
	if overflows {
		if w.overflow, failed = m.book(keys[len(keys)-1], field); failed != nil {
			return nil, failed, nil
		}
		w.price = t.overflowPrice
	}
	if t.overageAllowed {
		w.overage = MaxAmount - own.overage
		if t.overageCap != nil {
			w.overage = max(0, *t.overageCap-own.overage)
		}
	}
	return w, nil, nil
}

// loaded says whether the books know the grants that s, and what a drain adds to it, would be drawn from.
func (w *well) loaded(s shares, drained int64) bool {
	return w.own.canDraw(s.own) && (w.overflow == nil || w.overflow.canDraw(s.cost)) &&
		(w.subject == nil || w.subject.canDraw(s.units()+drained))
}

// remember keeps the books of the well for a rollback.
func (w *well) remember(m *machine) {
	for _, b := range []*book{w.own, w.overflow, w.subject} {
		if b != nil {
			m.remember(b)
		}
	}
}

// charge draws s for item i and writes the lines; the first of them carries what was requested. drained is use beyond
// everything that a drain records as overage.
func (m *machine) charge(w *well, i int, requested int64, s shares, drained int64) []Draw {
	var draws []Draw
	first := len(m.journal.lines)
	item := int32(i)
	w.own.take(s.own, func(grantID string, source Source, part int64) {
		draws = append(draws, Draw{Grant: grantID, Source: source, Meter: w.own.Meter, Amount: part})
		m.journal.add(w.own, m.now, line{kind: lineDebit, grantID: grantID, source: source, amount: part, item: item})
	})
	if s.overflow > 0 {
		covers := s.overflow
		w.overflow.take(s.cost, func(grantID string, source Source, part int64) {
			draws = append(draws, Draw{Grant: grantID, Source: source, Meter: w.overflow.Meter, Amount: part})
			m.journal.add(w.overflow, m.now, line{
				kind: lineDebit, grantID: grantID, source: source, amount: part, item: item,
				detail: mustJSON(overflowDetail{For: w.own.Meter, Units: covers, Price: w.price}),
			})
			covers = 0 // the first line of several carries the units
		})
	}
	if over := s.overage + drained; over > 0 {
		w.own.overage += over
		m.journal.add(w.own, m.now, line{kind: lineOverage, source: SourceOverage, amount: over, item: item})
		if s.overage > 0 {
			draws = append(draws, Draw{Source: SourceOverage, Meter: w.own.Meter, Amount: s.overage})
		}
	}
	if w.subject != nil {
		w.subject.take(min(s.units()+drained, w.subject.remaining()), func(grantID string, source Source, part int64) {
			m.journal.add(w.subject, m.now, line{kind: lineDebit, grantID: grantID, source: source, amount: part, item: item})
		})
	}
	if len(m.journal.lines) == first {
		// Nothing was there to take. The operation is remembered all the same.
		m.journal.add(w.own, m.now, line{kind: lineDebit, item: item})
	}
	m.journal.lines[first].requested = &requested
	return draws
}

// overflowDetail is what a line on the overflow meter remembers of the item it pays for.
type overflowDetail struct {
	For   string `json:"for"`
	Units int64  `json:"units"` // of the meter For; 0 on further lines of the same item
	Price int64  `json:"price"`
}
