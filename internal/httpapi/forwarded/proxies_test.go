package forwarded

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// from returns a request with these headers from the address peer.
func from(peer string, headers ...string) *http.Request {
	r := &http.Request{RemoteAddr: peer, Header: http.Header{}}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func trusting(cidrs ...string) *Proxies {
	var trusted []netip.Prefix
	for _, c := range cidrs {
		trusted = append(trusted, netip.MustParsePrefix(c))
	}
	return NewProxies(trusted, slog.New(slog.DiscardHandler))
}

func TestProxies_LastUntrustedHop(t *testing.T) {
	t.Parallel()
	const forwarded, direct = "X-Forwarded-For", "X-Real-IP"
	for _, c := range []struct {
		what    string
		trusted []string
		request *http.Request
		want    string
	}{
		{"no proxy", nil, from("198.51.100.7:4000"), "198.51.100.7"},
		{"nobody is trusted", nil, from("127.0.0.1:4000", forwarded, "203.0.113.9"), "127.0.0.1"},
		{"nobody is trusted, the other header", nil, from("127.0.0.1:4000", direct, "203.0.113.9"), "127.0.0.1"},
		{"somebody else is trusted", []string{"10.0.0.0/8"}, from("192.0.2.1:4000", forwarded, "203.0.113.9"), "192.0.2.1"},
		{"one hop", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "203.0.113.9"), "203.0.113.9"},
		{"a forged hop before it", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "1.1.1.1, 203.0.113.9"), "203.0.113.9"},
		{"a forged header before it", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "1.1.1.1", forwarded, "203.0.113.9"), "203.0.113.9"},
		{"a forged trusted hop", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "1.1.1.1, 10.9.9.9, 203.0.113.9"), "203.0.113.9"},
		{"two proxies of ours", []string{"10.0.0.0/8", "192.0.2.0/24"}, from("10.1.2.3:4000", forwarded, "203.0.113.9,192.0.2.5"), "203.0.113.9"},
		{"ours only", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "10.5.5.5, 10.4.4.4"), "10.5.5.5"},
		{"nothing in it", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, ""), "10.1.2.3"},
		{"rubbish", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "203.0.113.9, unknown"), "10.1.2.3"},
		{"rubbish before it", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "unknown, 203.0.113.9"), "203.0.113.9"},
		{"rubbish behind ours", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "203.0.113.9, x, 10.4.4.4"), "10.4.4.4"},
		{"with a port", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "203.0.113.9:5123"), "203.0.113.9"},
		{"version 6", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "2001:db8::1"), "2001:db8::1"},
		{"version 6 in brackets", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", forwarded, "[2001:DB8::1]"), "2001:db8::1"},
		{"version 6 with a port", []string{"fd00::/8"}, from("[fd00::1]:4000", forwarded, "[2001:db8::1]:99"), "2001:db8::1"},
		{"version 4 in 6", []string{"10.0.0.0/8"}, from("[::ffff:10.1.2.3]:4000", forwarded, "::ffff:203.0.113.9"), "203.0.113.9"},
		{"a zone", []string{"fe80::/10"}, from("[fe80::1%eth0]:4000", forwarded, "203.0.113.9"), "203.0.113.9"},
		{"a prefix with host bits", []string{"10.1.2.3/8"}, from("10.9.9.9:4000", forwarded, "203.0.113.9"), "203.0.113.9"},
		{"the other header", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", direct, "203.0.113.9"), "203.0.113.9"},
		{"the other header, rubbish", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", direct, "me"), "10.1.2.3"},
		{"the other header, twice", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", direct, "1.1.1.1", direct, "203.0.113.9"), "10.1.2.3"},
		{"both", []string{"10.0.0.0/8"}, from("10.1.2.3:4000", direct, "1.1.1.1", forwarded, "203.0.113.9"), "203.0.113.9"},
		{"no address at all", nil, from("@", forwarded, "203.0.113.9"), ""},
	} {
		got := trusting(c.trusted...).Client(c.request)
		assert.True(t, got.IsValid() == (c.want != "") && (c.want == "" || got.String() == c.want),
			"%s: %s, want %s", c.what, got, c.want)
	}
}

// A client may write any text before the hop that a trusted proxy appends. The text does not change the client's
// address.
func TestProxies_ForgedHop_NoEffect(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := trusting("10.0.0.0/8")
		hop := rapid.SampledFrom([]string{"10.0.0.1", "1.2.3.4", "unknown", "", "::1", "[::1]:5", "127.0.0.1", "a,b", "10.0.0.1, 10.0.0.2"})
		forged := rapid.SliceOfN(hop, 0, 6).Draw(t, "forged")
		r := from("10.1.1.1:80")
		for _, f := range forged {
			r.Header.Add("X-Forwarded-For", f)
		}
		if rapid.Bool().Draw(t, "one line") {
			r.Header.Set("X-Forwarded-For", strings.Join(append(forged, "203.0.113.9"), ", "))
		} else {
			r.Header.Add("X-Forwarded-For", "203.0.113.9")
		}
		r.Header.Set("X-Real-IP", hop.Draw(t, "real"))
		assert.Equal(t, "203.0.113.9", p.Client(r).String(), r.Header)
		r.RemoteAddr = "192.0.2.1:80"
		assert.Equal(t, "192.0.2.1", p.Client(r).String(), "from a peer that is not trusted, %v", r.Header)
	})
}

func TestProxies_WarnsOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p := NewProxies(nil, slog.New(slog.NewTextHandler(&log, nil)))
	p.Client(from("192.0.2.1:80"))
	assert.True(t, log.Len() <= 0, "nothing was ignored: %s", log.String())
	for range 3 {
		p.Client(from("192.0.2.1:80", "X-Forwarded-For", "203.0.113.9"))
	}
	got := log.String()
	assert.True(t, strings.Count(got, "\n") == 1 && strings.Contains(got, "192.0.2.1:80"), "log: %q", got)
}
