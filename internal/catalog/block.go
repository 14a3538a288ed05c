package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
)

// The kinds of who is blocked, and what is done with them.
const (
	BlockTenant  = "tenant"
	BlockSubject = "subject"
	BlockIP      = "ip"

	ActionBlock = "block"
	ActionAllow = "allow"
)

// Block refuses a tenant, a tenant's subject, or addresses, whatever their limits and balances say; or, with ActionAllow,
// exempts them from the rate limits.
type Block struct {
	Kind   string `json:"kind"`             // tenant, subject or ip
	Value  string `json:"value"`            // an id; an address, or a prefix as in 192.0.2.0/24
	Tenant string `json:"tenant,omitzero"`  // whose subject it is; "" for the other kinds
	Action string `json:"action,omitzero"`  // block or allow; "": block
	Reason string `json:"reason,omitempty"` // told to whoever is refused; at most MaxReason bytes

	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never

	CreatedAt time.Time `json:"-"`
	UpdatedAt time.Time `json:"-"`
}

// Check returns all faults of b.
func (b *Block) Check(given body.Given) []body.Fault {
	c := checker{given: given}
	b.checkKey(&c)
	c.require(b.Kind != BlockSubject || b.Tenant != "", "tenant", "is required: a subject is a tenant's")
	if c.has("action", b.Action != "") {
		c.oneOf("action", b.Action, ActionBlock, ActionAllow)
	}
	if c.has("reason", b.Reason != "") {
		c.text("reason", b.Reason, 1, MaxReason)
	}
	if c.has("expires_at", !b.ExpiresAt.IsZero()) {
		c.instant("expires_at", b.ExpiresAt)
	}
	return c.fields
}

// checkKey checks what names a block.
func (b *Block) checkKey(c *checker) {
	switch b.Kind {
	case BlockTenant, BlockSubject:
		c.id("value", b.Value)
	case BlockIP:
		if _, err := parsePrefix(b.Value); err != nil {
			c.require(false, "value", "%v", err)
		}
	default:
		c.oneOf("kind", b.Kind, BlockTenant, BlockSubject, BlockIP)
	}
	if b.Kind == BlockSubject {
		c.require(!c.has("tenant", b.Tenant != "") || bound.ID(b.Tenant), "tenant", bound.MustBeID)
	} else {
		c.require(b.Tenant == "", "tenant", "goes with kind subject only")
	}
}

// normalize gives b its one form, in which it is stored and compared.
func (b *Block) normalize() {
	b.CreatedAt, b.UpdatedAt = time.Time{}, time.Time{}
	if b.Action == "" {
		b.Action = ActionBlock
	}
	if !b.ExpiresAt.IsZero() {
		b.ExpiresAt = b.ExpiresAt.UTC().Truncate(time.Microsecond)
	}
	if b.Kind == BlockIP {
		if prefix, err := parsePrefix(b.Value); err == nil {
			b.Value = prefixText(prefix)
		}
	}
}

// same reports whether storing b in place of o changes nothing.
func (b Block) same(o Block) bool {
	return b.ExpiresAt.Equal(o.ExpiresAt) && b.Kind == o.Kind && b.Value == o.Value && b.Tenant == o.Tenant && b.Action == o.Action &&
		b.Reason == o.Reason
}

// over reports whether the block has expired at now.
func (b *Block) isExpired(now time.Time) bool {
	return !b.ExpiresAt.IsZero() && !now.Before(b.ExpiresAt)
}

// ParsePrefix reads an address, which is the prefix of all its bits, or a prefix in CIDR form. IPv4 addresses that are written
// as IPv6 become IPv4. Its error says what it must be.
func parsePrefix(text string) (netip.Prefix, error) {
	const must = "must be an IPv4 or IPv6 address or a prefix such as 192.0.2.0/24 or 2001:db8::/48"
	const longest = 64 // no text of an address and its bits is longer
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
		return netip.Prefix{}, fmt.Errorf("has bits beyond its prefix; write %s for all of them", whole)
	}
	return prefix, nil
}

// prefixText is a prefix as people write it: without bits if it is one address.
func prefixText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// Blocks are all blocks that were in force when they were read. They are shared: read them only. The zero value has none.
type Blocks struct {
	tenants  map[string]*Block
	subjects map[subjectKey]*Block
	prefixes map[netip.Prefix]*Block

	// The lengths that prefixes have, the longest first: what an address is looked up by.
	bits4, bits6 []int

	// ReadAt is when the process began to read them, by its own clock.
	ReadAt time.Time
}

type subjectKey struct{ tenant, subject string }

// newBlocks indexes blocks, which are normalized.
func newBlocks(blocks []Block, readAt time.Time) *Blocks {
	b := &Blocks{tenants: map[string]*Block{}, subjects: map[subjectKey]*Block{}, prefixes: map[netip.Prefix]*Block{}, ReadAt: readAt}
	for i := range blocks {
		block := &blocks[i]
		switch block.Kind {
		case BlockTenant:
			b.tenants[block.Value] = block
		case BlockSubject:
			b.subjects[subjectKey{block.Tenant, block.Value}] = block
		case BlockIP:
			prefix, err := parsePrefix(block.Value)
			if err != nil {
				continue // a hand wrote it into the table; nobody can be meant
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

// Find says who is refused: the first block of the tenant, its subject and the address that blocks. Otherwise it says whether
// one of them is exempt from the rate limits. subject and ip may be none. Among the prefixes that hold an address, the longest
// one that is in force counts.
func (b *Blocks) Find(tenant, subject string, ip netip.Addr, now time.Time) (blocked *Block, exempt bool) {
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

// prefix is the block in force of the longest prefix that holds ip, nil if there is none.
func (b *Blocks) prefix(ip netip.Addr, now time.Time) *Block {
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
			continue // n is of the other family; it is not
		}
		if block := b.prefixes[prefix]; block != nil && !block.isExpired(now) {
			return block
		}
	}
	return nil
}
