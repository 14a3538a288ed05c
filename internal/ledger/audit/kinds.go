package audit

// moves says what one unit of an entry adds to the sums of its period, to its grant, and to the units that holds
// reserve.
type moves struct {
	granted, amended, refunded, used, expired, adjusted int64
	overage, owed, paid                                 int64
	held                                                int64
	left                                                int64 // remainder of the grant
	issued                                              int64 // units that the grant has issued
}

// remaining returns what one unit adds to the remaining units of the balance.
func (m *moves) remaining() int64 {
	return m.granted + m.amended + m.refunded - m.used - m.expired + m.adjusted - m.held
}

// kinds is the auditor's own table of the kinds of entries. It deliberately shares nothing with the ledger's table; a
// test compares both tables.
var kinds = map[string]moves{
	"grant":         {granted: 1, left: 1, issued: 1},
	"debit":         {used: 1, left: -1},
	"overage":       {overage: 1},
	"refund":        {refunded: 1, left: 1},
	"unoverage":     {overage: -1},
	"forgive":       {},
	"owe":           {overage: 1, owed: 1},
	"settle":        {used: 1, overage: -1, owed: -1, paid: 1, left: -1},
	"unowe":         {overage: -1, owed: -1},
	"unsettle":      {refunded: 1, paid: -1, left: 1},
	"closed_refund": {},
	"amend_up":      {amended: 1, left: 1, issued: 1},
	"amend_down":    {amended: -1, left: -1},
	"expire":        {expired: 1, left: -1},
	"void":          {adjusted: -1, left: -1},
	"adjust_up":     {adjusted: 1, left: 1, issued: 1},
	"adjust_down":   {adjusted: -1, left: -1},
	"hold":          {held: 1, left: -1},
	"capture":       {used: 1, held: -1},
	"release":       {held: -1, left: 1},
	"rollover_out":  {left: -1},
	"rollover_in":   {left: 1, issued: 1},
	"schedule":      {},
	"extend":        {},
	"extend_grant":  {},
	"denial":        {},
}

// Moved says what one unit of an entry of a kind adds to the sums of its period.
type Moved struct {
	Granted, Amended, Refunded, Used, Expired, Adjusted, Held, Overage, Owed, Paid, Remaining int64
}

// MovedBy returns what one unit of a kind adds to the sums according to the auditor's table. A test compares this
// with the ledger's table. MovedBy returns false for an unknown kind.
func MovedBy(kind string) (Moved, bool) {
	m, known := kinds[kind]
	return Moved{m.granted, m.amended, m.refunded, m.used, m.expired, m.adjusted, m.held, m.overage, m.owed, m.paid, m.remaining()}, known
}
