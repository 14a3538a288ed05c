package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// guessesPerSecond is the number of invented keys, links and cookies that an address may send in a second, as in
	// the contract.
	guessesPerSecond = 20
	guessEvery       = time.Second / guessesPerSecond

	// addressesMax bounds the addresses in memory, which take 100 bytes each. All further addresses share one limit.
	addressesMax = 50_000

	// forgetEvery is the shortest pause between two searches for addresses that can be forgotten. A search takes a
	// few milliseconds under a lock. Without this pause, each wrong secret from a new address could cause a search.
	forgetEvery = 100 * time.Millisecond

	// networkBits6 is the length of the IPv6 prefix that counts as one address. An IPv6 customer has at least a /64.
	networkBits6 = 64
)

// guesses limits wrong secrets per address, by the generic cell rate algorithm. An address that sent no wrong secret
// for a second may send guessesPerSecond at once, and then one in each guessEvery.
type guesses struct {
	mu   sync.Mutex
	full map[netip.Prefix]time.Time // by address: when it may again send guessesPerSecond at once

	searched time.Time // when addresses were last searched and forgotten
}

// take counts a wrong secret that came from an address at the time `now`. If the secret is within the limit, it
// returns zero. Otherwise it returns how long the address must wait.
func (g *guesses) take(from netip.Addr, now time.Time) time.Duration {
	network := networkOf(from)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.full == nil {
		g.full = map[netip.Prefix]time.Time{}
	}
	full, seen := g.full[network]
	if !seen && len(g.full) >= addressesMax {
		if now.Sub(g.searched) >= forgetEvery {
			g.forget(now)
		}
		if len(g.full) >= addressesMax {
			network = netip.Prefix{}
			full = g.full[network]
		}
	}
	if full.Before(now) {
		full = now
	}
	full = full.Add(guessEvery)
	if wait := full.Sub(now) - time.Second; wait > 0 {
		return wait
	}
	g.full[network] = full
	return 0
}

// giveBack takes back a take of an address whose secret was right.
func (g *guesses) giveBack(from netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	network := networkOf(from)
	if full, seen := g.full[network]; seen {
		g.full[network] = full.Add(-guessEvery)
	}
}

// wait returns how long the address must wait before it may send another wrong secret, or zero.
func (g *guesses) wait(from netip.Addr, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	full := g.full[networkOf(from)]
	if full.Before(now) {
		return 0
	}
	return max(0, full.Add(guessEvery).Sub(now)-time.Second)
}

// forget removes the addresses that may again send guessesPerSecond at once.
func (g *guesses) forget(now time.Time) {
	g.searched = now
	for network, full := range g.full {
		if full.Before(now) {
			delete(g.full, network)
		}
	}
}

// networkOf returns the prefix that counts as one address.
func networkOf(from netip.Addr) netip.Prefix {
	bits := from.BitLen()
	if from.Is6() {
		bits = networkBits6
	}
	prefix, err := from.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // the connection has no address
	}
	return prefix
}
