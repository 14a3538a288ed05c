package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// guessesPerSecond is the number of wrong secrets that an address may send in a second, as in the contract.
	guessesPerSecond = 20
	guessEvery       = time.Second / guessesPerSecond

	// addressesMax bounds the addresses in memory. Each takes 100 bytes. All further addresses share one budget.
	addressesMax = 50_000

	// forgetEvery is the shortest time between two searches for addresses that can be dropped. A search takes a few
	// milliseconds under a lock. Without this bound, many addresses could cause a search for each wrong secret.
	forgetEvery = 100 * time.Millisecond

	// networkBits6 is the length of the IPv6 prefix that counts as one address. One customer has at least a /64.
	networkBits6 = 64
)

// guesses limits wrong secrets per address, by the generic cell rate algorithm: an address that sent no wrong secret
// for a second may send guessesPerSecond at once, and then one every guessEvery.
type guesses struct {
	mu   sync.Mutex
	full map[netip.Prefix]time.Time // when the budget of an address is full again

	searched time.Time // when addresses were last dropped
}

// take counts a wrong secret from an address at now. It returns how long the address must wait before the next wrong
// secret. If it returns zero, this secret was within the limit.
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

// wait returns how long the address must wait before its next wrong secret. It returns zero if the address need not
// wait.
func (g *guesses) wait(from netip.Addr, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	full := g.full[networkOf(from)]
	if full.Before(now) {
		return 0
	}
	return max(0, full.Add(guessEvery).Sub(now)-time.Second)
}

// forget removes addresses whose budget is full again.
func (g *guesses) forget(now time.Time) {
	g.searched = now
	for network, full := range g.full {
		if full.Before(now) {
			delete(g.full, network)
		}
	}
}

// networkOf returns the prefix by which wrong secrets from an address are counted.
func networkOf(from netip.Addr) netip.Prefix {
	bits := from.BitLen()
	if from.Is6() {
		bits = networkBits6
	}
	prefix, err := from.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // a connection without an address
	}
	return prefix
}
