package address

import (
	"cmp"
	"net/netip"
)

// The default prefix lengths of networks that share a bucket. An IPv6 customer has at least a /64.
const bitsV4, bitsV6 = 32, 64

// The largest prefix lengths.
const (
	MaxV4 = 32
	MaxV6 = 128
)

// Prefix has the numbers of leading bits of an address that identify its network. The zero value means 32 and 64.
type Prefix struct {
	V4 int `json:"v4,omitzero"` // 1..MaxV4; 0: 32
	V6 int `json:"v6,omitzero"` // 1..MaxV6; 0: 64
}

// WithDefaults returns p with the default lengths in place of zeros.
func (p Prefix) WithDefaults() Prefix { return Prefix{cmp.Or(p.V4, bitsV4), cmp.Or(p.V6, bitsV6)} }

// Embedded returns the IPv4 address inside a NAT64 address (64:ff9b::/96) or an IPv4-compatible address (::/96). It
// returns other addresses unchanged. Behind NAT64, all IPv4 addresses are in one /64. Addresses in 64:ff9b:1::/48 are
// not changed, because each network decides which bits of such an address contain the IPv4 address.
func Embedded(ip netip.Addr) netip.Addr {
	ip = ip.Unmap().WithZone("")
	if !ip.Is6() {
		return ip
	}
	b := ip.As16()
	switch [12]byte(b[:12]) {
	case [12]byte{0, 0x64, 0xff, 0x9b}:
	case [12]byte{}:
		if b[12] == 0 { // ::, ::1 and addresses that contain no public IPv4 address
			return ip
		}
	default:
		return ip
	}
	return netip.AddrFrom4([4]byte(b[12:]))
}

// Network returns the name of ip's network, as bytes. Addresses of one network share a bucket of a rule.
func Network(ip netip.Addr, p Prefix) string {
	prefix, bits, usual := prefixOf(ip, p)
	if !prefix.IsValid() {
		return Embedded(ip).String() // only for a rule that was written by hand with more bits than an address has
	}
	name := prefix.Addr().AsSlice()[:(bits+7)/8]
	if bits != usual { // networks with another prefix length have another bucket
		name = append(name, byte(bits))
	}
	return string(name)
}

// Text returns the network of ip as text for people: an address, or a prefix.
func Text(ip netip.Addr, p Prefix) string {
	prefix, _, _ := prefixOf(ip, p)
	if !prefix.IsValid() || prefix.IsSingleIP() {
		return Embedded(ip).String()
	}
	return prefix.String()
}

// prefixOf returns the network of ip, the length of its prefix, and the default length of the prefix.
func prefixOf(ip netip.Addr, p Prefix) (prefix netip.Prefix, bits, usual int) {
	ip = Embedded(ip)
	bits, usual = p.V6, bitsV6
	if ip.Is4() {
		bits, usual = p.V4, bitsV4
	}
	bits = cmp.Or(bits, usual)
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}, bits, usual
	}
	return prefix, bits, usual
}
