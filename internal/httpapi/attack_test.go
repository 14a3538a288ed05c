package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

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
		if statuses = append(statuses, response.StatusCode); len(statuses) == 1 { // an open connection answers this
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
