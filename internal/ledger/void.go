package ledger

// Void takes back what is left of a grant. Units that were drawn stay drawn; units on hold stay on hold.
type Void struct {
	Tenant  string
	Key     string
	GrantID string
	Meter   string // needed only where several meters have a grant of this id; empty: any
	Reason  string // required
}

// ID implements Operation.
func (v *Void) ID() OperationID { return OperationID{v.Tenant, v.Key} }

// Kind implements Operation.
func (v *Void) Kind() Kind { return KindVoid }

// Targets implements Operation: the grant.
func (v *Void) Targets(t *Targets) { t.Grants = append(t.Grants, GrantName{v.Tenant, v.GrantID}) }

// Demand implements Operation: the balances that have a grant of this id.
func (v *Void) Demand(found *Located) []Demand {
	var out []Demand
	for _, k := range v.balances(found) {
		out = append(out, Demand{k, DemandAll})
	}
	return out
}

func (v *Void) balances(found *Located) []BalanceKey {
	var out []BalanceKey
	for _, k := range found.Grants[GrantName{v.Tenant, v.GrantID}] {
		if v.Meter == "" || k.Meter == v.Meter {
			out = append(out, k)
		}
	}
	return out
}

func (v *Void) answers(*Change) {}

func (v *Void) fingerprint() [16]byte {
	return fingerprintOf(appendTexts(nil, "void/1", v.Tenant, v.GrantID, v.Meter, v.Reason))
}

// Validate implements Operation.
func (v *Void) Validate() error {
	if v.Meter != "" {
		if e := ValidateID("meter", v.Meter); e != nil {
			return e
		}
	}
	return FirstOf(validKey(v.Key), ValidateID("tenant", v.Tenant), ValidateID("grant_id", v.GrantID), validReason(v.Reason))
}

func (v *Void) decide(b *Batch, c *Call) error {
	homes := v.balances(&b.Located)
	switch len(homes) {
	case 0:
		return c.refuse(Errorf(CodeGrantNotFound, "grant_id", "tenant %q has no grant %q", v.Tenant, v.GrantID))
	case 1:
	default:
		return c.refuse(Errorf(CodeInvalidArgument, "meter", "%d balances have a grant %q: name the meter", len(homes), v.GrantID))
	}
	book, refused, err := b.loadedBook(homes[0])
	if err != nil {
		return err
	}
	if refused != nil {
		return c.refuse(refused)
	}
	g := book.grant(v.GrantID)
	if g == nil || g.Status != GrantPending && (g.Status != GrantActive || g.Remaining == 0 && g.Held == 0) {
		return c.refuse(Errorf(CodeConflict, "grant_id", "nothing is left of grant %q to take back", v.GrantID))
	}
	left := g.Remaining
	out := &Change{OperationID: v.Key, Tenant: v.Tenant, Meter: book.Meter, Subject: book.Subject, Grant: g.ID, Amount: -left, Before: book.Remaining(), Was: g.Status}
	first := len(b.journal)
	book.setRemaining(g, 0)
	g.Status, g.changed = GrantVoided, true
	b.enter(book, Entry{Kind: EntryVoid, Grant: g.ID, Source: g.Source, Amount: left})
	book.refresh()
	b.answerChange(c, book, first, out, v.Reason)
	return nil
}

func (v *Void) rebuild(stored []Entry) (answer, error) { return storedAnswer[Change](stored) }
