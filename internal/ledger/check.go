package ledger

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// CheckRequest requests the answer that a debit of Items would get.
type CheckRequest struct {
	Tenant  string
	Subject string
	Items   []Item // 1..ItemsMax, each meter once
}

// CheckItem is the answer to one item of a check.
type CheckItem struct {
	Meter          string
	Required       int64
	MaxAllowedNow  int64
	WouldSucceedAt time.Time // zero: now if Err is nil, otherwise unknown or never
	Cap            *Position // position of the subject's cap; nil: no cap
	Position
	Err *errcode.Error // nil: allowed
}

// CheckResult is the answer that a debit would get at AsOf.
type CheckResult struct {
	Allowed bool
	Items   []CheckItem
	AsOf    time.Time
	Copies  []BalanceCopy  // copies of the items' balances, for a cache
	Others  []BalanceCopy  // copies of overflow meters' and subjects' balances, on which the answer depends as well
	Refusal *errcode.Error // error that the debit would get; nil: it would succeed

	book *Book // the only balance that decides, if it refuses
	last atomic.Pointer[refusedAmount]
}

// refusedAmount is the answer of RefusalOf for an amount.
type refusedAmount struct {
	amount  int64
	refusal *errcode.Error
}

// RefusalOf returns the refusal of another debit that differs only in its key and the amount of its only item. It
// returns nil if the debit would succeed, or if more than one balance decides. It keeps the last answer, because a
// flood mostly repeats one amount.
func (r *CheckResult) RefusalOf(d *Debit) *errcode.Error {
	if r.book == nil {
		return nil
	}
	amount := d.Items[0].Amount
	if last := r.last.Load(); last != nil && last.amount == amount {
		return last.refusal
	}
	b := NewBatch()
	b.Now, b.Books[r.book.BalanceKey] = r.AsOf, r.book.clone()
	c := NewCall(d)
	if err := b.decide(c); err != nil {
		return nil
	}
	refused, _ := errors.AsType[*errcode.Error](c.Err)
	r.last.Store(&refusedAmount{amount, refused})
	return refused
}

// Validate returns the first fault as an *errcode.Error.
func (q *CheckRequest) Validate() error {
	if e := FirstOf(ValidateName("tenant", q.Tenant), ValidateSubject(q.Subject)); e != nil {
		return e
	}
	return ValidateItems(q.Items)
}

// Debit returns the debit that the check simulates.
func (q *CheckRequest) Debit() *Debit {
	return &Debit{Tenant: q.Tenant, Subject: q.Subject, Items: q.Items}
}

// Check answers q. It leaves the batch unchanged. The result is valid only if Next is Done.
func (b *Batch) Check(q *CheckRequest) (*CheckResult, Next, error) {
	result, refused, err := b.check(q.Debit())
	if refused != nil {
		return nil, Next{}, refused
	}
	var next Next
	next.add(err, nil)
	return result, next, nil
}

func (b *Batch) check(d *Debit) (*CheckResult, *errcode.Error, error) {
	result := &CheckResult{Allowed: true, Items: make([]CheckItem, len(d.Items)), AsOf: b.Now}
	var undo []savepoint
	for i := range d.Items {
		item := &result.Items[i]
		// The answer contains the total of all sources, so sourcesOf gets the largest amount.
		s, refused, err := b.sourcesOf(d.Tenant, d.Items[i].Meter, d.Subject, MaxAmount)
		if refused != nil || err != nil {
			return nil, inItem(refused, i), err
		}
		amount := d.Items[i].Amount
		*item = CheckItem{
			Meter: s.own.Meter, Required: amount, MaxAllowedNow: s.available(), Position: s.own.Position(),
			Cap: b.capOf(s.own.BalanceKey, d.Subject),
		}
		// A single item is refused below.
		if len(d.Items) > 1 && (s.own.Unknown() || item.MaxAllowedNow < amount) {
			refused, err := b.refusalOf(d, i)
			if err != nil {
				return nil, nil, err
			}
			if refused != nil {
				result.refuse(i, refused)
			}
		}
		result.Copies = append(result.Copies, s.own.Copy(b.Now))
		for _, book := range s.books() {
			if book != nil && book != s.own {
				result.Others = append(result.Others, book.Copy(b.Now))
			}
			if book != nil {
				undo = append(undo, savepoint{book.BalanceKey, book.clone()})
			}
		}
	}
	// Items may share an overflow meter: only a decision on all of them shows whether all items succeed together.
	c, first := NewCall(d), len(b.journal)
	err := b.decide(c)
	b.saved = append(b.saved[:0], undo...)
	b.rollBack(first)
	delete(b.Stored, c.ID)
	if err != nil {
		return nil, nil, err
	}
	if e, refused := errors.AsType[*errcode.Error](c.Err); refused {
		result.Refusal = e
		denial := DenialOf(e)
		switch {
		case len(d.Items) == 1:
			result.refuse(0, e)
			if len(result.Others) == 0 {
				result.book = b.Books[BalanceKey{d.Tenant, d.Items[0].Meter, ""}].clone()
			}
		case denial != nil && result.Allowed: // the items succeed alone, but not together
			result.Allowed, result.Items[denial.Item].Err = false, e
		}
	}
	return result, nil, nil
}

// refuse records the refusal of an item.
func (r *CheckResult) refuse(item int, e *errcode.Error) {
	r.Allowed, r.Items[item].Err = false, e
	if denial := DenialOf(e); denial != nil {
		r.Items[item].WouldSucceedAt = denial.WouldSucceedAt
	}
}

// refusalOf returns the refusal that a debit of one item of d would get.
func (b *Batch) refusalOf(d *Debit, item int) (*errcode.Error, error) {
	one := *d
	one.Items = d.Items[item : item+1]
	e, err := b.simulate(&one)
	if e == nil || err != nil {
		return e, err
	}
	if denial := DenialOf(e); denial != nil {
		denial.Item = item
		return denial.refusal(e.Code, denial.AsOf), nil
	}
	if e.Field() == itemField(0, "meter") {
		e.Fields[0].Field = itemField(item, "meter")
	}
	return e, nil
}
