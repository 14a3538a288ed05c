package forwarded

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
)

// Proxies is the set of peers that may name the addresses of their clients in headers. Any client can write
// X-Forwarded-For, so only the hops that trusted proxies wrote are used.
type Proxies struct {
	trusted []netip.Prefix
	log     *slog.Logger
	warned  atomic.Bool // whether the warning about an untrusted proxy was logged
}

// NewProxies returns the proxies with addresses in these prefixes. If another peer sends X-Forwarded-For or
// X-Real-IP, the first such request writes a warning to log.
func NewProxies(trusted []netip.Prefix, log *slog.Logger) *Proxies {
	p := &Proxies{log: log}
	for _, prefix := range trusted {
		p.trusted = append(p.trusted, prefix.Masked())
	}
	return p
}

// Client returns the address of r's client, or no address if the connection has none.
//
// If the peer is not trusted, the client is the peer. If the peer is trusted, the client is the last hop in
// X-Forwarded-For that is not trusted, or X-Real-IP if X-Forwarded-For is missing. The search goes from the last hop
// to the first. At a hop that cannot be parsed, the search ends with the hop that was read before.
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

// warnIgnored logs, only once, that the header with the client's address was ignored. This explains why all clients
// of a gateway seem to have the same address.
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
