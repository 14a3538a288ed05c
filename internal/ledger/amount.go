package ledger

import (
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// MaxAmount is the largest amount a request, a grant or a balance may carry.
const MaxAmount int64 = bound.MaxAmount

// UsedMax and RefundedMax bound the sums of a balance's open period that grow with every operation. One operation
// adds less than 2^58 to a sum, so every sum fits into 64 bits. The total opening + granted + amended + refunded fits as well.
// No more units than this total can expire.
const (
	// UsedMax is the use at which the ledger refuses all further debits and holds.
	UsedMax int64 = 1 << 62
	// RefundedMax is larger than UsedMax, so that all use of a period can be refunded within the period.
	RefundedMax = UsedMax + UsedMax/2
)

// full returns the error that refuses use of a balance which has reached UsedMax. It returns nil for other balances.
func (b *Book) full() *errcode.Error {
	if b.Used < UsedMax {
		return nil
	}
	return errcode.Errorf(errcode.AmountOutOfRange, "meter", "meter %q of tenant %q has reached %d, the most that can be used in one period", b.Meter, b.Tenant, UsedMax)
}

// room returns how many units the balance can still receive. Remaining, held and pending units together are at most
// MaxAmount, so that every client can read them exactly.
func (b *Book) room() int64 {
	room := MaxAmount - b.Remaining() - b.Held
	for _, g := range b.Grants {
		if g.Status == GrantPending {
			room -= min(g.Amount, room)
		}
	}
	return max(0, room)
}
