package webhooks

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"

	"github.com/quotasvc/quotasvc/internal/kit/address"
)

// errPrivate is the error for an address that must not be called.
var errPrivate = errors.New("must not be an address of a private, loopback, link-local or other special network (QUOTASVC_WEBHOOK_ALLOW_PRIVATE=true permits them)")

// Guard decides which addresses may be called by webhooks.
type Guard struct {
	AllowPrivate bool // permits every address
}

// special lists further networks that no public receiver uses. netip itself recognizes private and loopback networks.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // addresses of the local network
	netip.MustParsePrefix("100.64.0.0/10"),  // shared by customers of a provider (carrier-grade NAT)
	netip.MustParsePrefix("192.0.0.0/24"),   // reserved for protocols
	netip.MustParsePrefix("198.18.0.0/15"),  // for benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved, and the broadcast address
	netip.MustParsePrefix("64:ff9b:1::/48"), // local NAT64: the position of the IPv4 address is not known
	netip.MustParsePrefix("2001::/32"),      // Teredo: the IPv4 address is obfuscated
	netip.MustParsePrefix("fec0::/10"),      // site-local, deprecated
	netip.MustParsePrefix("100::/64"),       // packets to this network are discarded
}

// sixToFour is the prefix of 6to4 addresses. The IPv4 address follows this prefix.
var sixToFour = netip.MustParsePrefix("2002::/16")

// Permit returns an error if the address must not be called.
func (g *Guard) Permit(ip netip.Addr) error {
	if g.AllowPrivate {
		return nil
	}
	ip = address.Embedded(ip) // the IPv4 address inside NAT64, IPv4-mapped and IPv4-compatible addresses
	if sixToFour.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[2:6]))
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() { // multicast, loopback and link-local are not global unicast
		return errPrivate
	}
	if slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return errPrivate
	}
	return nil
}

// control checks the address to which a name was resolved. The dialer calls it before it opens a connection.
func (g *Guard) control(_, target string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(target)
	if err != nil {
		return err
	}
	return g.Permit(to.Addr())
}
