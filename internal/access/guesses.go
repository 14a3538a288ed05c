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

// take counts a wrong secret that came from an address at the time `now`. If the secret is within the limit, the wait
// is zero. Otherwise it is how long the address must wait. The prefix is the one whose limit applies to the address.
func (g *guesses) take(from netip.Addr, now time.Time) (limited netip.Prefix, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	limited = g.limitOf(from, now)
	full, wait := g.next(limited, now)
	if wait > 0 {
		return limited, wait
	}
	if g.full == nil {
		g.full = map[netip.Prefix]time.Time{}
	}
	g.full[limited] = full
	return limited, 0
}

// giveBack undoes a take that returned this prefix, because the secret was right.
func (g *guesses) giveBack(limited netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if full, seen := g.full[limited]; seen {
		g.full[limited] = full.Add(-guessEvery)
	}
}

// wait returns how long the address must wait before it may send another wrong secret, or zero. It is zero for an
// address that shares its limit: wrong secrets of others must not keep a right one from being looked up.
func (g *guesses) wait(from netip.Addr, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, wait := g.next(networkOf(from), now)
	return wait
}

// limitOf returns the prefix whose limit applies to an address.
func (g *guesses) limitOf(from netip.Addr, now time.Time) netip.Prefix {
	network := networkOf(from)
	if _, seen := g.full[network]; seen || len(g.full) < addressesMax {
		return network
	}
	if now.Sub(g.searched) >= forgetEvery {
		g.forget(now)
	}
	if len(g.full) < addressesMax {
		return network
	}
	return netip.Prefix{}
}

// next returns the value of `full` after a further wrong secret under a limit, and how long this secret must wait.
func (g *guesses) next(limited netip.Prefix, now time.Time) (full time.Time, wait time.Duration) {
	if full = g.full[limited]; full.Before(now) {
		full = now
	}
	full = full.Add(guessEvery)
	return full, max(0, full.Sub(now)-time.Second)
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
