package forwarded

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
)

// Proxies are the peers whose statements about client addresses are trusted. Anybody can write X-Forwarded-For. It counts
// only from the first trusted peer on.
type Proxies struct {
	trusted []netip.Prefix
	log     *slog.Logger
	warned  atomic.Bool // the warning about an untrusted proxy was logged
}

// NewProxies returns the proxies with addresses in these prefixes. log gets a line if another peer writes their headers.
func NewProxies(trusted []netip.Prefix, log *slog.Logger) *Proxies {
	p := &Proxies{log: log}
	for _, prefix := range trusted {
		p.trusted = append(p.trusted, prefix.Masked())
	}
	return p
}

// Client returns the address of r's client, or no address if the connection has none. That is the peer's address, unless the
// peer is trusted: then it is the last hop in X-Forwarded-For that is not trusted, or X-Real-IP if that header is absent. A
// hop that cannot be parsed ends the search at the hop before it.
func (p *Proxies) Client(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap().WithZone("")
	hops, direct := r.Header["X-Forwarded-For"], r.Header["X-Real-Ip"]
	if !p.trusts(client) {
		p.warnIgnored(r, len(hops)+len(direct) > 0)
		return client
	}
	if len(hops) == 0 {
		if len(direct) == 1 {
			if address, ok := parseHop(direct[0]); ok {
				client = address
			}
		}
		return client
	}
	for rest, more := strings.Join(hops, ","), true; more && p.trusts(client); {
		hop := rest
		i := strings.LastIndexByte(rest, ',')
		if more = i >= 0; more {
			rest, hop = rest[:i], rest[i+1:]
		}
		address, ok := parseHop(hop)
		if !ok {
			break
		}
		client = address
	}
	return client
}

func (p *Proxies) trusts(address netip.Addr) bool {
	for _, prefix := range p.trusted {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// warnIgnored logs once why all clients of a gateway seem to have one address.
func (p *Proxies) warnIgnored(r *http.Request, named bool) {
	if named && !p.warned.Swap(true) {
		p.log.Warn("ignored X-Forwarded-For or X-Real-IP of a peer that is not a trusted proxy: limits per ip use the peer's address",
			"remote_addr", r.RemoteAddr)
	}
}

// parseHop parses an address as proxies write it: bare, in brackets, or with a port.
func parseHop(hop string) (netip.Addr, bool) {
	hop = strings.Trim(hop, " \t")
	if port, err := netip.ParseAddrPort(hop); err == nil {
		return port.Addr().Unmap().WithZone(""), true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
	return address.Unmap().WithZone(""), err == nil
}
