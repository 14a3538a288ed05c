package webhooks

import (
	"errors"
	"net/netip"
	"syscall"

	"github.com/quotasvc/quotasvc/internal/kit/address"
)

// errPrivate is the reason for a refused address.
var errPrivate = errors.New("must not be an address of a private, loopback, link-local or other special network (QUOTASVC_WEBHOOK_ALLOW_PRIVATE=true permits them)")

// Guard decides which addresses may be called.
type Guard struct {
	AllowPrivate bool // permits every address
}

// special are networks that no public receiver uses. netip itself recognizes others.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // addresses of the local network
	netip.MustParsePrefix("100.64.0.0/10"),  // carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),   // reserved for protocols
	netip.MustParsePrefix("198.18.0.0/15"),  // for benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved, and the broadcast address
	netip.MustParsePrefix("64:ff9b:1::/48"), // local NAT64: the position of the IPv4 address is not known
	netip.MustParsePrefix("2001::/32"),      // Teredo: the IPv4 address is obfuscated
	netip.MustParsePrefix("fec0::/10"),      // site-local, deprecated
	netip.MustParsePrefix("100::/64"),       // for packets to discard
}

// sixToFour is the prefix of 6to4. The IPv4 address follows the prefix.
var sixToFour = netip.MustParsePrefix("2002::/16")

// Permit returns an error if the address must not be called.
func (g *Guard) Permit(ip netip.Addr) error {
	if g.AllowPrivate {
		return nil
	}
	ip = address.Embedded(ip) // from NAT64, IPv4-mapped and IPv4-compatible addresses
	if sixToFour.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[2:6]))
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() { // multicast, loopback and link-local are not global unicast
		return errPrivate
	}
	for _, p := range special {
		if p.Contains(ip) {
			return errPrivate
		}
	}
	return nil
}

// control checks the address to which a name was resolved. It is called before a connection is opened.
func (g *Guard) control(_, target string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(target)
	if err != nil {
		return err
	}
	return g.Permit(to.Addr())
}
