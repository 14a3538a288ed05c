package ratelimit

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// Receipt lists the charges of an allowed request, as Decision.Charged does. It can be encoded and sent to another
// process.
type Receipt struct {
	Tenant  string
	Subject string // of the request
	Once    string // Request.Once
	Charges []ReceiptCharge

	local uint16
}

// ReceiptCharge is one charge of a Receipt.
type ReceiptCharge struct {
	Rule, Dimension string
	Cost            int64
	Unit            int64 // Charge.Unit

	taken int64
}

var errReceipt = errors.New("ratelimit: not a receipt")

// Receipt returns the receipt of a charged request of a subject. req must be the result of Decision.Charged.
func (req Request) Receipt(subject string) Receipt {
	r := Receipt{Tenant: req.Tenant, Subject: subject, Once: req.Once, Charges: make([]ReceiptCharge, len(req.Charges)), local: req.local}
	for i, c := range req.Charges {
		r.Charges[i] = ReceiptCharge{Rule: c.Rule.ID, Dimension: c.Dimension, Cost: c.Cost, Unit: c.Unit, taken: c.taken}
	}
	return r
}

// Request returns the argument for Limiter.Refund and Limiter.Settle. It contains the charges whose rules find returns,
// with the time zones of their windows. Charges of rules that no longer exist are left out.
func (r *Receipt) Request(find func(id string) (*rule.Rule, *time.Location)) Request {
	req := Request{Tenant: r.Tenant, Once: r.Once}
	for i, c := range r.Charges {
		known, zone := find(c.Rule)
		if known == nil {
			continue
		}
		charge := Charge{Rule: known, Dimension: c.Dimension, Cost: c.Cost, Unit: c.Unit, Zone: zone, taken: c.taken}
		req.add(charge, r.local&(1<<i) != 0)
	}
	return req
}

// Append appends the receipt to b.
func (r *Receipt) Append(b []byte) []byte {
	text := func(s string) {
		b = append(b, byte(len(s))) // at most bound.MaxName, which fits
		b = append(b, s...)
	}
	text(r.Tenant)
	text(r.Subject)
	text(r.Once)
	b = binary.BigEndian.AppendUint16(b, r.local)
	b = append(b, byte(len(r.Charges))) // at most MaxCharges
	for _, c := range r.Charges {
		text(c.Rule)
		text(c.Dimension)
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, c.Cost), c.taken), c.Unit)
	}
	return b
}

// ParseReceipt reads a receipt that Append wrote, or, if full is false, one of the version before, without subject,
// id and units. b must come from a trusted source, because only its length is checked.
func ParseReceipt(b []byte, full bool) (Receipt, error) {
	var r Receipt
	bad := false
	next := func(n int) []byte {
		if bad = bad || n > len(b); bad {
			return make([]byte, n)
		}
		part := b[:n]
		b = b[n:]
		return part
	}
	text := func() string { return string(next(int(next(1)[0]))) }
	number := func() int64 {
		v, n := binary.Varint(b)
		bad = bad || n <= 0
		next(max(n, 0))
		return v
	}
	r.Tenant = text()
	if full {
		r.Subject, r.Once = text(), text()
	}
	r.local = binary.BigEndian.Uint16(next(2))
	for range next(1)[0] {
		c := ReceiptCharge{Rule: text(), Dimension: text(), Cost: number(), taken: number()}
		if full {
			c.Unit = number()
		}
		r.Charges = append(r.Charges, c)
	}
	if bad || len(b) > 0 || len(r.Charges) > MaxCharges {
		return Receipt{}, errReceipt
	}
	return r, nil
}
