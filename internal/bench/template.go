package bench

import (
	"bytes"
	"fmt"
)

const (
	// keyMark and tenantMark stand in a template where a request's own key and tenant go. They are as long as what replaces
	// them, so a request is made by overwriting a copy.
	keyMark    = "KKKKKKKKKKKKKKKK"
	tenantMark = "t-NNNNN"

	tenantDigits = 5
	tenantsMax   = 99_999

	// spread is odd, so multiplying by it permutes 64-bit numbers: keys that never repeat, in an order no index likes, as
	// clients' random keys are.
	spread = 0x9e3779b97f4a7c15
)

// template is a prebuilt HTTP request.
type template struct {
	text    []byte
	keys    []int // offsets of keyMark
	tenants []int // offsets of the digits of tenantMark
	debits  int   // debits of one request
	// recorded: what is answered with 200 must be in the journal in the end.
	recorded bool
}

// newTemplate makes a POST to path.
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

// fill overwrites request, a copy of the template's text, with the keys and tenants of request number n.
func (t *template) fill(request []byte, n uint64, tenants int) {
	for i, at := range t.keys {
		putKey(request[at:at+len(keyMark)], keyOf(n, i))
	}
	for i, at := range t.tenants {
		putTenant(request[at:at+tenantDigits], tenantOf(n, i, tenants))
	}
}

// keyOf is the number in the key of debit i of request n. Requests have at most 2^12 debits.
func keyOf(n uint64, i int) uint64 { return (n<<12 | uint64(i)) * spread }

// tenantOf picks a tenant, uniformly.
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

// tenantID is the id of tenant number v.
func tenantID(v int) string { return fmt.Sprintf("t-%05d", v) }

// plainRoute is the route of checks whose limits never deny.
const plainRoute = "/search"

// hotTenant takes all the load of the hot variants.
const hotTenant = "t-hot"

const meter = "api_calls"

// debitBody is the body of a debit.
func debitBody(tenant string) string {
	return `{"tenant":"` + tenant + `","items":[{"meter":"` + meter + `","amount":1}]}`
}

// checkBody is the body of a check that three limits and a balance decide.
func checkBody(tenant, route string) string {
	return `{"tenant":"` + tenant + `","subject":"user-1","route":"` + route + `","items":[{"meter":"` + meter + `","amount":1}]}`
}

// batchBody is the body of a batch of size debits of different tenants.
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

func keyHeader() string { return "Idempotency-Key: " + keyMark + "\r\n" }

func bearer(key string) string { return "Authorization: Bearer " + key + "\r\n" }
