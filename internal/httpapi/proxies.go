package httpapi

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
)

// proxies are the peers whose word about their clients' addresses is taken. Anybody can write X-Forwarded-For; it says
// something only from the first hop on that is known.
type proxies struct {
	trusted []netip.Prefix
	log     *slog.Logger
	warned  atomic.Bool // it was said that somebody's word is not taken
}

func newProxies(trusted []netip.Prefix, log *slog.Logger) *proxies {
	p := &proxies{log: log}
	for _, prefix := range trusted {
		p.trusted = append(p.trusted, prefix.Masked())
	}
	return p
}

// client returns the address of r's client, or no address if the connection has none: the peer's own, unless that is trusted. Then it
// is the last hop in X-Forwarded-For that is not trusted itself, or X-Real-IP if there is no such header. What cannot be read
// ends the search at the hop that wrote it.
func (p *proxies) client(r *http.Request) netip.Addr {
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

func (p *proxies) trusts(address netip.Addr) bool {
	for _, prefix := range p.trusted {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// sayIgnored tells operators, once, why all clients of a gateway have one address.
func (p *proxies) warnIgnored(r *http.Request, named bool) {
	if named && !p.warned.Swap(true) {
		p.log.Warn("a gateway names its client's address, and is not a trusted proxy: limits per ip take the gateway for the client",
			"remote_addr", r.RemoteAddr)
	}
}

// parseHop reads an address as proxies write it: bare, in brackets, or with a port.
func parseHop(hop string) (netip.Addr, bool) {
	hop = strings.Trim(hop, " \t")
	if port, err := netip.ParseAddrPort(hop); err == nil {
		return port.Addr().Unmap().WithZone(""), true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hop, "["), "]"))
	return address.Unmap().WithZone(""), err == nil
}
