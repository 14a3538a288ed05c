package ratelimit

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

const (
	receiptVersion  = 2 // in version 1 receipts have no subject, id and units
	receiptNonceLen = 8 // bytes; the nonce makes the ids of two charges in the same millisecond differ
	receiptMacLen   = 16
)

var errReceiptID = errors.New("ratelimit: not the id of a receipt")

// ReceiptIDs encodes receipts as signed ids for clients, and decodes such ids.
type ReceiptIDs struct{ key []byte }

// NewReceiptIDs returns a ReceiptIDs that signs with key.
func NewReceiptIDs(key []byte) *ReceiptIDs { return &ReceiptIDs{key: key} }

func (x *ReceiptIDs) sign(b []byte) []byte { return sumOf(x.key, b)[:receiptMacLen] }

// Text returns the id of a receipt: the base64url encoding of the time, a nonce, the receipt and a signature.
func (x *ReceiptIDs) Text(r Receipt) string {
	b := append(make([]byte, 0, 256), receiptVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(time.Now().UnixMilli()))
	var nonce [receiptNonceLen]byte
	_, _ = rand.Read(nonce[:]) // rand.Read never fails
	b = r.Append(append(b, nonce[:]...))
	return base64.RawURLEncoding.EncodeToString(append(b, x.sign(b)...))
}

// Parse returns the receipt of an id, the time at which the id was issued, and a name that no other id has. It
// returns an error if the id was not signed with the key.
func (x *ReceiptIDs) Parse(id string) (r Receipt, issued time.Time, name string, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(b) < 1+8+receiptNonceLen+receiptMacLen || b[0] < 1 || b[0] > receiptVersion {
		return Receipt{}, time.Time{}, "", errReceiptID
	}
	signed, mac := b[:len(b)-receiptMacLen], b[len(b)-receiptMacLen:]
	if !hmac.Equal(mac, x.sign(signed)) {
		return Receipt{}, time.Time{}, "", errReceiptID
	}
	if r, err = ParseReceipt(signed[1+8+receiptNonceLen:], b[0] > 1); err != nil {
		return Receipt{}, time.Time{}, "", errReceiptID
	}
	return r, time.UnixMilli(int64(binary.BigEndian.Uint64(signed[1:9]))), base64.RawURLEncoding.EncodeToString(mac), nil
}
