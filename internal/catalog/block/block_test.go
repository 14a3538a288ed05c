package block

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/body"
)

func TestParsePrefix_OneForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "192.0.2.1/32": "192.0.2.1", "10.0.0.0/8": "10.0.0.0/8", "0.0.0.0/0": "0.0.0.0/0", "::/0": "::/0",
		"2001:DB8::1": "2001:db8::1", "2001:db8:0:0::/48": "2001:db8::/48", "::ffff:192.0.2.1": "192.0.2.1",
		"::ffff:192.0.2.0/120": "192.0.2.0/24", "2001:db8::1/128": "2001:db8::1",
	} {
		p, err := parsePrefix(text)
		require.NoError(t, err, text)
		require.Equal(t, want, prefixText(p), text)
		again, err := parsePrefix(prefixText(p))
		require.NoError(t, err)
		require.Equal(t, p, again)
	}
	for _, text := range []string{
		"", "a", "192.0.2", "192.0.2.1/33", "192.0.2.1/-1", "192.0.2.1/", "/24", "192.0.2.0/24/24", "fe80::1%eth0", "fe80::%eth0/64",
		"::ffff:0:0/90", "192.0.2.1 ", "192.0.2.1\n", "010.0.0.1", "{192.0.2.1}", "192.0.2.1/024", strings.Repeat("1", 1<<20),
	} {
		_, err := parsePrefix(text)
		require.Error(t, err, "%.40q", text)
		require.Less(t, len(err.Error()), 200)
	}
	_, err := parsePrefix("10.1.2.3/8")
	require.ErrorContains(t, err, "write 10.0.0.0/8 for the whole prefix")
}

func TestBlock_FaultsByField(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		block Block
		field string
	}{
		"no kind":               {Block{Value: "x"}, "kind"},
		"a tenant in brackets":  {Block{Kind: KindTenant, Value: "<acme>"}, "value"},
		"a tenant of a line":    {Block{Kind: KindTenant, Value: "a\nb"}, "value"},
		"a tenant of 1 MB":      {Block{Kind: KindTenant, Value: strings.Repeat("x", 1<<20)}, "value"},
		"a tenant's tenant":     {Block{Kind: KindTenant, Value: "a", Tenant: "b"}, "tenant"},
		"a subject of nobody":   {Block{Kind: KindSubject, Value: "a"}, "tenant"},
		"a subject of no id":    {Block{Kind: KindSubject, Value: "a", Tenant: "<b>"}, "tenant"},
		"a subject of 1 MB":     {Block{Kind: KindSubject, Value: strings.Repeat("x", 1<<20), Tenant: "b"}, "value"},
		"an address's tenant":   {Block{Kind: KindIP, Value: "192.0.2.1", Tenant: "b"}, "tenant"},
		"no address":            {Block{Kind: KindIP, Value: "acme"}, "value"},
		"another action":        {Block{Kind: KindTenant, Value: "a", Action: "drop"}, "action"},
		"a long reason":         {Block{Kind: KindTenant, Value: "a", Reason: strings.Repeat("x", MaxReason+1)}, "reason"},
		"a reason with a NUL":   {Block{Kind: KindTenant, Value: "a", Reason: "\x00"}, "reason"},
		"the end of all time":   {Block{Kind: KindTenant, Value: "a", ExpiresAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, "expires_at"},
		"before there was time": {Block{Kind: KindTenant, Value: "a", ExpiresAt: time.Date(1, 2, 1, 0, 0, 0, 0, time.UTC)}, "expires_at"},
	} {
		faults := tc.block.Check(body.Given{})
		require.Len(t, faults, 1, name)
		require.Equal(t, tc.field, faults[0].Field, name)
		require.Less(t, len(faults[0].Message), 250, name)
	}
}

// at is the instant at which these tests look up blocks.
var at = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func blockOf(kind, value, action string) Block {
	b := Block{Kind: kind, Value: value, Action: action}
	if kind == KindSubject {
		b.Tenant, b.Value, _ = strings.Cut(value, "/")
	}
	b.Normalize()
	return b
}

func TestIndex_Find(t *testing.T) {
	t.Parallel()
	until := func(b Block, at time.Time) Block { b.ExpiresAt = at; return b }
	blocks := NewIndex([]Block{
		blockOf(KindTenant, "bad", ActionBlock),
		blockOf(KindTenant, "vip", ActionAllow),
		blockOf(KindSubject, "vip/eve", ActionBlock),
		blockOf(KindSubject, "acme/bot", ActionAllow),
		blockOf(KindIP, "10.0.0.0/8", ActionBlock),
		blockOf(KindIP, "10.1.0.0/16", ActionAllow),
		blockOf(KindIP, "10.1.1.1", ActionBlock),
		blockOf(KindIP, "2001:db8::/32", ActionBlock),
		blockOf(KindIP, "2001:db8:1::/48", ActionAllow),
		until(blockOf(KindIP, "10.2.0.0/16", ActionAllow), at),
		until(blockOf(KindIP, "192.0.2.0/24", ActionBlock), at.Add(time.Microsecond)),
		until(blockOf(KindTenant, "over", ActionBlock), at.Add(-time.Hour)),
	}, at)
	for _, tc := range []struct {
		tenant, subject, ip string
		blocked             string
		exempt              bool
	}{
		{"acme", "", "", "", false},
		{"bad", "", "", "bad", false},
		{"bad", "bot", "10.1.0.1", "bad", false},
		{"vip", "", "", "", true},
		{"vip", "eve", "", "eve", false},
		{"acme", "eve", "", "", false}, // the blocked subject of that name belongs to another tenant
		{"acme", "bot", "", "", true},
		{"acme", "", "10.9.9.9", "10.0.0.0/8", false},
		{"vip", "", "10.9.9.9", "10.0.0.0/8", false}, // a block takes precedence over an allow of another kind
		{"acme", "", "10.1.9.9", "", true},           // the longest prefix decides
		{"acme", "", "10.1.1.1", "10.1.1.1", false},
		{"acme", "", "::ffff:10.1.1.1", "10.1.1.1", false},
		{"acme", "", "10.2.0.1", "10.0.0.0/8", false}, // the block of the longer prefix has just expired
		{"acme", "", "192.0.2.9", "192.0.2.0/24", false},
		{"acme", "", "11.0.0.1", "", false},
		{"acme", "", "2001:db8:2::1", "2001:db8::/32", false},
		{"acme", "", "2001:db8:1::1", "", true},
		{"acme", "", "::1", "", false},
		{"over", "", "", "", false},
	} {
		var ip netip.Addr
		if tc.ip != "" {
			ip = netip.MustParseAddr(tc.ip)
		}
		blocked, exempt := blocks.Find(tc.tenant, tc.subject, ip, at)
		name := ""
		if blocked != nil {
			name = blocked.Value
		}
		require.Equal(t, tc.blocked, name, "%+v", tc)
		require.Equal(t, tc.exempt, exempt, "%+v", tc)
	}
	none, exempt := (&Index{}).Find("bad", "s", netip.MustParseAddr("10.0.0.1"), at)
	require.Nil(t, none)
	require.False(t, exempt)
}

func TestIndex_LongestPrefixCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		addr := func(name string) netip.Addr {
			if rapid.Bool().Draw(t, name+" is IPv6") {
				return netip.AddrFrom16([16]byte{0x20, 15: byte(rapid.IntRange(0, 15).Draw(t, name))})
			}
			return netip.AddrFrom4([4]byte{10, 3: byte(rapid.IntRange(0, 15).Draw(t, name))})
		}
		var list []Block
		var prefixes []netip.Prefix
		for i := range rapid.IntRange(0, 12).Draw(t, "blocks") {
			a := addr(fmt.Sprint("block ", i))
			p, err := a.Prefix(a.BitLen() - rapid.IntRange(0, 5).Draw(t, fmt.Sprint("bits ", i)))
			require.NoError(t, err)
			b := blockOf(KindIP, p.String(), rapid.SampledFrom([]string{ActionBlock, ActionAllow}).Draw(t, fmt.Sprint("action ", i)))
			if rapid.Bool().Draw(t, fmt.Sprint("over ", i)) {
				b.ExpiresAt = at
			}
			list, prefixes = append(list, b), append(prefixes, p)
		}
		ip := addr("address")
		best := -1
		for i, p := range prefixes {
			// if two blocks have the same prefix, the index contains the later block
			if p.Contains(ip) && (best < 0 || p.Bits() >= prefixes[best].Bits()) {
				inForce := !list[i].isExpired(at)
				later := func() bool {
					for j := i + 1; j < len(prefixes); j++ {
						if prefixes[j] == p {
							return true
						}
					}
					return false
				}
				if inForce && !later() {
					best = i
				}
			}
		}
		blocked, exempt := NewIndex(list, at).Find("acme", "", ip, at)
		wantBlocked := best >= 0 && list[best].Action == ActionBlock
		require.True(t, wantBlocked == (blocked != nil) && exempt == (best >= 0 && !wantBlocked),
			"%s: %v, exempt %v; want %d of %v", ip, blocked, exempt, best, list)
	})
}

func BenchmarkIndex_Find(b *testing.B) {
	const most = 50_000 // maxBlocks of the catalogue
	list := make([]Block, 0, most)
	for i := range most {
		a := netip.AddrFrom4([4]byte{byte(i % 200), byte(i >> 8), byte(i), 0})
		p, err := a.Prefix(8 + i%25)
		require.NoError(b, err)
		list = append(list, blockOf(KindIP, p.String(), ActionBlock))
	}
	blocks := NewIndex(list, at)
	ip := netip.MustParseAddr("250.1.2.3")
	b.ReportAllocs()
	for b.Loop() {
		if blocked, _ := blocks.Find("acme", "user", ip, at); blocked != nil {
			b.Fatal(blocked)
		}
	}
}
