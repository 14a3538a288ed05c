package gate

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// Codes of the model: the holder is blocked, and all leases are held.
const (
	blockedCode = CodeForbidden
	fullCode    = CodeRateLimited
)

// holder is a caller that may take a lease.
type holder struct {
	tenant, subject string
	ip              netip.Addr
}

// leaseModel computes the answers that the service must give, without the service's algorithms.
type leaseModel struct {
	burst     int
	blocked   map[string]bool // keys such as "tenant acme", "subject acme/ann" or "ip 192.0.2.1"
	suspended map[string]bool
	held      map[string]map[string]bool // ids of held leases, by tenant
}

// mayHold returns the code with which a lease of h is refused even if leases are free. It returns "" if h may hold
// leases.
func (m *leaseModel) mayHold(h *holder) errcode.Code {
	switch {
	case m.blocked["tenant "+h.tenant], m.blocked["subject "+h.tenant+"/"+h.subject], m.blocked["ip "+h.ip.String()]:
		return blockedCode
	case h.tenant == "ghost":
		return errcode.TenantNotFound
	case m.suspended[h.tenant]:
		return errcode.TenantSuspended
	}
	return ""
}

func (m *leaseModel) acquire(h *holder) errcode.Code {
	code := m.mayHold(h)
	if code == "" && len(m.held[h.tenant]) == m.burst {
		return fullCode
	}
	return code
}

// renew renews a lease, or ends the lease if its holder may no longer hold it.
func (m *leaseModel) renew(h *holder, id string) errcode.Code {
	if code := m.mayHold(h); code != "" {
		delete(m.held[h.tenant], id)
		return code
	}
	if !m.held[h.tenant][id] {
		return CodeLeaseNotFound
	}
	return ""
}

// leaseProgram makes random calls to two instances and compares each result with the model.
type leaseProgram struct {
	leaseModel

	t         *testing.T
	url       string
	instances []*instance
	random    *rand.Rand
	holders   []holder
	leases    []string // every id that was ever issued
	of        map[string]holder
}

func (p *leaseProgram) any() *instance { return p.instances[p.random.IntN(len(p.instances))] }

func (p *leaseProgram) expect(what string, want errcode.Code, err error) {
	p.t.Helper()
	if got := CodeOf(err); err == nil && want != "" || err != nil && got != want {
		p.t.Fatalf("%s: %q (%v), the model says %q", what, got, err, want)
	}
}

func (p *leaseProgram) acquire(h holder) {
	lease, err := p.any().Acquire(p.t.Context(), LeaseRequest{Tenant: h.tenant, Rule: "exports", Subject: h.subject, IP: h.ip, TTL: time.Hour})
	p.expect(fmt.Sprintf("acquire of %+v", h), p.leaseModel.acquire(&h), err)
	if err == nil {
		p.held[h.tenant][lease.ID], p.of[lease.ID] = true, h
		p.leases = append(p.leases, lease.ID)
		require.True(p.t, lease.InUse == int64(len(p.held[h.tenant])),
			"%d leases are in use, the model has %d", lease.InUse, len(p.held[h.tenant]))
	}
}

func (p *leaseProgram) parsed(id string) ratelimit.LeaseID {
	parsed, err := p.any().ParseLease(id)
	p.expect("parse", "", err)
	return parsed
}

func (p *leaseProgram) renew() {
	id := p.leases[p.random.IntN(len(p.leases))]
	h := p.of[id]
	_, err := p.any().Renew(p.t.Context(), p.parsed(id), time.Hour)
	p.expect(fmt.Sprintf("renewal of %+v", h), p.leaseModel.renew(&h, id), err)
}

func (p *leaseProgram) release() {
	id := p.leases[p.random.IntN(len(p.leases))]
	p.expect("release", "", p.any().Release(p.t.Context(), p.parsed(id)))
	delete(p.held[p.of[id].tenant], id)
}

// forge parses an id with one changed bit, or an invented id. The id must be refused.
func (p *leaseProgram) forge() {
	text := []byte{0x12, 4, 'a', 'c', 'm', 'e', 7, 'e', 'x', 'p', 'o', 'r', 't', 's', 0, 1, 2, 3, 4, 5, 6, 7, 8}
	if p.random.IntN(2) == 0 {
		text, _ = base64.RawURLEncoding.DecodeString(p.leases[p.random.IntN(len(p.leases))])
		text[p.random.IntN(len(text))] ^= 1 << p.random.IntN(8)
	}
	_, err := p.any().ParseLease(base64.RawURLEncoding.EncodeToString(text))
	p.expect("a forged id", CodeLeaseNotFound, err)
}

// block blocks a holder by its tenant, subject or address. If that block exists, it deletes the block.
func (p *leaseProgram) block() {
	h := p.holders[p.random.IntN(len(p.holders))]
	b, name := block.Block{Kind: block.KindTenant, Value: h.tenant}, "tenant "+h.tenant
	switch p.random.IntN(3) {
	case 1:
		b, name = block.Block{Kind: block.KindSubject, Tenant: h.tenant, Value: h.subject}, "subject "+h.tenant+"/"+h.subject
	case 2:
		b, name = block.Block{Kind: block.KindIP, Value: netip.PrefixFrom(h.ip, h.ip.BitLen()).String()}, "ip "+h.ip.String()
	}
	c := p.any().tenants.catalog
	var err error
	if p.blocked[name] {
		err = c.DeleteBlock(p.t.Context(), b.Kind, b.Value, b.Tenant)
	} else {
		_, _, err = c.PutBlock(p.t.Context(), b)
	}
	p.expect("block of "+name, "", err)
	p.blocked[name] = !p.blocked[name]
	for _, in := range p.instances {
		testenv.Eventually(p.t, func() bool {
			for i := range p.holders {
				h := &p.holders[i]
				found, _ := in.tenants.catalog.Blocks().Find(h.tenant, h.subject, h.ip, time.Now())
				if (found != nil) != (p.mayHold(h) == blockedCode) {
					return false
				}
			}
			return true
		}, "the block is known")
	}
}

func (p *leaseProgram) suspend() {
	tenant := []string{"acme", "b"}[p.random.IntN(2)]
	status := catalog.StatusSuspended
	if p.suspended[tenant] {
		status = catalog.StatusActive
	}
	p.any().putTenant(catalog.Tenant{ID: tenant, Plan: "basic", Status: status})
	p.suspended[tenant] = !p.suspended[tenant]
	p.awaitCatalogue()
}

// awaitCatalogue waits until every instance has read the present catalogue.
func (p *leaseProgram) awaitCatalogue() {
	for _, in := range p.instances {
		in.awaitAnnouncements(p.url)
	}
}

// Two instances take, renew and end leases as a simple model does. Blocks of tenants, subjects and addresses,
// suspensions, unknown tenants and forged ids occur in random order.
func TestLease_RandomPrograms_AgreeWithModel(t *testing.T) {
	t.Parallel()
	const steps = 150
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	url, options := testenv.Postgres(t), testenv.Redis(t)
	p := &leaseProgram{
		leaseModel: leaseModel{burst: 3, blocked: map[string]bool{}, suspended: map[string]bool{}, held: map[string]map[string]bool{"acme": {}, "b": {}, "ghost": {}}},
		t:          t, url: url, random: rand.New(rand.NewPCG(seed, 0)), of: map[string]holder{},
	}
	for range 2 {
		p.instances = append(p.instances, newInstance(t, url, patientClient(options)))
	}
	p.instances[0].catalogue(concurrencyLimit("exports", int64(p.burst)))
	p.instances[0].putTenant(catalog.Tenant{ID: "b", Plan: "basic"})
	for _, tenant := range []string{"acme", "b", "ghost"} {
		for _, subject := range []string{"ann", "bob"} {
			for _, ip := range []string{"192.0.2.1", "2001:db8::1"} {
				p.holders = append(p.holders, holder{tenant, subject, netip.MustParseAddr(ip)})
			}
		}
	}
	p.awaitCatalogue()
	p.acquire(p.holders[0]) // at least one lease, because a program may block all holders before its first lease
	for range steps {
		switch n := p.random.IntN(100); {
		case n < 40:
			p.acquire(p.holders[p.random.IntN(len(p.holders))])
		case n < 70:
			p.renew()
		case n < 80:
			p.release()
		case n < 86:
			p.forge()
		case n < 96:
			p.block()
		default:
			p.suspend()
		}
	}
}
