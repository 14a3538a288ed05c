package block

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/catalog/check"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/period"
)

// Values of Block.Kind and Block.Action.
const (
	KindTenant  = "tenant"
	KindSubject = "subject"
	KindIP      = "ip"

	ActionBlock = "block"
	ActionAllow = "allow"
)

// MaxReason is the longest reason of a block, in bytes, as in the ledger.
const MaxReason = 500

// Block refuses the requests of a tenant, of a subject or from addresses, regardless of limits and balances. With
// ActionAllow it exempts these requests from the rate limits instead.
type Block struct {
	Kind   string `json:"kind"`             // tenant, subject or ip
	Value  string `json:"value"`            // an id; an address, or a prefix as in 192.0.2.0/24
	Tenant string `json:"tenant,omitzero"`  // the tenant of a subject; empty for other kinds
	Action string `json:"action,omitzero"`  // block or allow; empty: block
	Reason string `json:"reason,omitempty"` // shown to the refused client; at most MaxReason bytes

	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: the block does not expire

	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// Check returns all faults of b.
func (b *Block) Check(given body.Given) []body.Fault {
	c := check.Checker{Given: given}
	b.CheckKey(&c)
	c.Require(b.Kind != KindSubject || b.Tenant != "", "tenant", "is required for kind subject")
	if c.Has("action", b.Action != "") {
		c.OneOf("action", b.Action, ActionBlock, ActionAllow)
	}
	if c.Has("reason", b.Reason != "") {
		c.Text("reason", b.Reason, 1, MaxReason)
	}
	if c.Has("expires_at", !b.ExpiresAt.IsZero()) {
		c.Instant("expires_at", b.ExpiresAt)
	}
	return c.Faults
}

// CheckKey checks the fields that identify a block: kind, value and tenant.
func (b *Block) CheckKey(c *check.Checker) {
	switch b.Kind {
	case KindTenant, KindSubject:
		c.Name("value", b.Value)
	case KindIP:
		if _, err := parsePrefix(b.Value); err != nil {
			c.Require(false, "value", "%v", err)
		}
	default:
		c.OneOf("kind", b.Kind, KindTenant, KindSubject, KindIP)
	}
	if b.Kind == KindSubject {
		c.Require(!c.Has("tenant", b.Tenant != "") || bound.Name(b.Tenant), "tenant", "%s", bound.MustBeName)
	} else {
		c.Require(b.Tenant == "", "tenant", "requires kind subject")
	}
}

// Normalize gives b its normal form, in which it is stored and compared.
func (b *Block) Normalize() {
	b.CreatedAt, b.UpdatedAt = time.Time{}, time.Time{}
	b.Action = cmp.Or(b.Action, ActionBlock)
	b.ExpiresAt = period.Micros(b.ExpiresAt)
	if b.Kind == KindIP {
		if prefix, err := parsePrefix(b.Value); err == nil {
			b.Value = prefixText(prefix)
		}
	}
}

// Same reports whether storing b in place of o changes nothing.
func (b Block) Same(o Block) bool {
	return b.ExpiresAt.Equal(o.ExpiresAt) && b.Kind == o.Kind && b.Value == o.Value && b.Tenant == o.Tenant && b.Action == o.Action &&
		b.Reason == o.Reason
}

// isExpired reports whether the block has expired at the instant `now`.
func (b *Block) isExpired(now time.Time) bool {
	return !b.ExpiresAt.IsZero() && !now.Before(b.ExpiresAt)
}

// Key returns a block with its identifying fields in normal form, and the faults of these fields.
func Key(kind, value, tenant string) (Block, []body.Fault) {
	b := Block{Kind: kind, Value: value, Tenant: tenant}
	var c check.Checker
	b.CheckKey(&c)
	b.Normalize()
	return b, c.Faults
}

// Of returns the tenant of the block. It returns "" for a block of addresses.
func (b *Block) Of() string {
	if b.Kind == KindTenant {
		return b.Value
	}
	return b.Tenant
}

// ID returns the name of the block in announcements and diffs.
func (b *Block) ID() string {
	if b.Kind == KindSubject {
		return b.Kind + " " + bound.Join(b.Tenant, b.Value)
	}
	return b.Kind + " " + b.Value
}

// Cursor returns the cursor of the page that begins after the block.
func (b *Block) Cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(b.Kind + " " + b.Tenant + " " + b.Value)) // no field has a blank
}

// ParseCursor returns kind, tenant and value of the block that a cursor names. It returns false if the cursor is
// invalid.
func ParseCursor(cursor string) ([3]string, bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) == 0 {
		return [3]string{}, err == nil
	}
	parts := strings.Split(string(raw), " ")
	if len(parts) != 3 {
		return [3]string{}, false
	}
	key, faults := Key(parts[0], parts[2], parts[1])
	return [3]string{parts[0], parts[1], parts[2]}, len(faults) == 0 && key.Cursor() == cursor
}

// parsePrefix parses an address, or a prefix in CIDR form. It returns an address as a prefix with the full number of
// bits. An IPv4 address written as IPv6 becomes IPv4. The error says how the text must look.
func parsePrefix(text string) (netip.Prefix, error) {
	const must = "must be an IPv4 or IPv6 address or a prefix such as 192.0.2.0/24 or 2001:db8::/48"
	const longest = 64 // bytes; longer than any address with its prefix length
	if len(text) > longest {
		return netip.Prefix{}, errors.New(must)
	}
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, errors.New(must)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, errors.New(must)
	}
	const mapped = 96 // bits before the IPv4 address in ::ffff:0:0/96
	if addr := prefix.Addr(); addr.Is4In6() {
		if prefix.Bits() < mapped {
			return netip.Prefix{}, errors.New(must)
		}
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-mapped)
	}
	if whole := prefix.Masked(); whole != prefix {
		return netip.Prefix{}, fmt.Errorf("has bits after its prefix; write %s for the whole prefix", whole)
	}
	return prefix, nil
}

// prefixText returns a prefix in its usual form. If the prefix is one address, it omits the prefix length.
func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// Index holds all blocks that were in force when they were read. It is shared and must not be changed. The zero Index
// has no blocks.
type Index struct {
	tenants  map[string]*Block
	subjects map[subjectKey]*Block
	prefixes map[netip.Prefix]*Block

	// bits4 and bits6 are the prefix lengths of the blocks, longest first. An address is looked up with each length.
	bits4, bits6 []int

	// ReadAt is the instant at which the process began to read the blocks, by the process's clock.
	ReadAt time.Time
}

type subjectKey struct{ tenant, subject string }

// NewIndex returns an index of normalized blocks.
func NewIndex(blocks []Block, readAt time.Time) *Index {
	b := &Index{tenants: map[string]*Block{}, subjects: map[subjectKey]*Block{}, prefixes: map[netip.Prefix]*Block{}, ReadAt: readAt}
	for i := range blocks {
		block := &blocks[i]
		switch block.Kind {
		case KindTenant:
			b.tenants[block.Value] = block
		case KindSubject:
			b.subjects[subjectKey{block.Tenant, block.Value}] = block
		case KindIP:
			prefix, err := parsePrefix(block.Value)
			if err != nil {
				continue // the value was written to the table by hand and is no prefix: the block has no effect
			}
			b.prefixes[prefix] = block
			bits := &b.bits6
			if prefix.Addr().Is4() {
				bits = &b.bits4
			}
			if !slices.Contains(*bits, prefix.Bits()) {
				*bits = append(*bits, prefix.Bits())
			}
		}
	}
	longestFirst := func(x, y int) int { return cmp.Compare(y, x) }
	slices.SortFunc(b.bits4, longestFirst)
	slices.SortFunc(b.bits6, longestFirst)
	return b
}

// Find returns the block that refuses the tenant. If there is none, it returns the block of the subject, or else the
// block of the address. If no block refuses, exempt reports whether a block exempts the tenant, the subject or the
// address from the rate limits. subject may be empty and ip may be invalid. If several prefixes contain the address,
// the longest prefix in force decides.
func (b *Index) Find(tenant, subject string, ip netip.Addr, now time.Time) (blocked *Block, exempt bool) {
	if len(b.tenants) == 0 && len(b.subjects) == 0 && len(b.prefixes) == 0 {
		return nil, false
	}
	found := [...]*Block{b.tenants[tenant], nil, b.prefix(ip, now)}
	if subject != "" && len(b.subjects) > 0 {
		found[1] = b.subjects[subjectKey{tenant, subject}]
	}
	for _, block := range found {
		switch {
		case block == nil || block.isExpired(now):
		case block.Action == ActionAllow:
			exempt = true
		default:
			return block, false
		}
	}
	return nil, exempt
}

// prefix returns the block of the longest prefix in force that contains ip. It returns nil if there is none.
func (b *Index) prefix(ip netip.Addr, now time.Time) *Block {
	if !ip.IsValid() || len(b.prefixes) == 0 {
		return nil
	}
	bits := b.bits6
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = b.bits4
	}
	for _, n := range bits {
		prefix, err := ip.Prefix(n)
		if err != nil {
			continue // n is a prefix length of the other address family
		}
		if block := b.prefixes[prefix]; block != nil && !block.isExpired(now) {
			return block
		}
	}
	return nil
}
