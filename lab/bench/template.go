package bench

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/quotasvc/quotasvc/lab/bench/past"
)

const (
	// keyMark and tenantMark are the placeholders of a request's key and tenant in a template. They have the length
	// of the final text, so a request is created by overwriting a copy of the template.
	keyMark    = "KKKKKKKKKKKKKKKK"
	tenantMark = "t-NNNNNN"

	tenantDigits = 6
	tenantsMax   = 1_000_000

	// spread is odd, so a multiplication by it permutes the 64-bit numbers. Keys never repeat, and they arrive in
	// random order as the keys of real clients do.
	spread = 0x9e3779b97f4a7c15
)

// template is a prebuilt HTTP request with placeholders.
type template struct {
	text    []byte
	keys    []int // offsets of keyMark
	tenants []int // offsets of the digits of tenantMark
	debits  int   // number of debits in one request
	first   int   // number of the first tenant
	among   int   // if above 0, only the first `among` tenants are used; 0: all
	inOrder bool  // tenants are used in order, so that each gets one debit or check; otherwise in random order
	// recorded is true if the journal must contain the debits that are answered with 200.
	recorded bool
}

// newTemplate returns the template of a POST to path.
func newTemplate(path, headers, body string, debits int) *template {
	text := []byte(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		path, headers, len(body), body))
	t := &template{text: text, debits: debits}
	t.keys = offsets(text, keyMark, 0)
	t.tenants = offsets(text, tenantMark, len(tenantMark)-tenantDigits)
	return t
}

func offsets(text []byte, mark string, skip int) []int {
	var out []int
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(mark))
		if i < 0 {
			return out
		}
		out = append(out, at+i+skip)
		at += i + len(mark)
	}
}

// fill writes the keys and tenants of request number n into request, a copy of the template's text.
func (t *template) fill(request []byte, n uint64, tenants int) {
	for i, at := range t.keys {
		putKey(request[at:at+len(keyMark)], keyOf(n, i))
	}
	if t.among > 0 {
		tenants = min(tenants, t.among)
	}
	for i, at := range t.tenants {
		tenant := tenantOf(n, i, tenants)
		if t.inOrder {
			tenant = int(n)*len(t.tenants) + i
		}
		putTenant(request[at:at+tenantDigits], t.first+tenant)
	}
}

// keyOf returns the number that the key of debit i of request n contains. A request has at most 2^12 debits.
func keyOf(n uint64, i int) uint64 { return (n<<12 | uint64(i)) * spread }

// tenantOf chooses a tenant. All tenants have the same probability.
func tenantOf(n uint64, i, tenants int) int {
	h := keyOf(n, i) * 0xd6e8feb86659fd93
	return int((h >> 33) % uint64(tenants))
}

func putKey(out []byte, v uint64) {
	const digits = "0123456789abcdef"
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = digits[v&15]
		v >>= 4
	}
}

func putTenant(out []byte, v int) {
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = byte('0' + v%10)
		v /= 10
	}
}

// tenantID returns the id of tenant number v.
func tenantID(v int) string { return past.TenantID(v) }

// plainRoute is the route of checks whose limits never deny.
const plainRoute = "/search"

// hotTenant is the id of the tenant to which all requests of the hot variants belong.
const hotTenant = "t-hot"

const meter = past.Meter

// thresholdPrefix begins the ids of tenants whose use causes events at many percentages. plainPrefix begins the ids of
// tenants without percentages. thresholdTenants is the maximum number of tenants of each kind. It is high enough that
// lanes batch the debits as in the variants with many tenants.
const (
	thresholdPrefix  = "told-"
	plainPrefix      = "untold-"
	thresholdTenants = 1000
)

// debitBody returns the body of a debit.
func debitBody(tenant string) string {
	return `{"tenant":"` + tenant + `","items":[{"meter":"` + meter + `","amount":1}]}`
}

// checkBody returns the body of a check, to which three limits and a balance apply.
func checkBody(tenant, route string) string {
	return `{"tenant":"` + tenant + `","subject":"user-1","route":"` + route + `","items":[{"meter":"` + meter + `","amount":1}]}`
}

// batchBody returns the body of a batch of `size` debits, each of a different tenant.
func batchBody(size int) string {
	var b bytes.Buffer
	b.WriteString(`{"debits":[`)
	for i := range size {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"idempotency_key":"` + keyMark + `",` + debitBody(tenantMark)[1:])
	}
	b.WriteString(`]}`)
	return b.String()
}

// checkBatchPath is the path for many checks in a request. Older binaries do not have it.
const checkBatchPath = "/v1/check/batch"

// checksBody returns the body of a request with `size` checks.
func checksBody(tenant string, size int) string {
	return `{"checks":[` + strings.Repeat(checkBody(tenant, plainRoute)+",", size-1) + checkBody(tenant, plainRoute) + `]}`
}

func keyHeader() string { return "Idempotency-Key: " + keyMark + "\r\n" }

func bearer(key string) string { return "Authorization: Bearer " + key + "\r\n" }
