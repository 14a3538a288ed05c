package webhooks

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

func TestGuard_SpecialAddresses_Refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "0.0.0.0", "0.1.2.3", "100.64.0.1", "192.0.0.8",
		"198.18.0.1", "198.19.255.255", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1", "100::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "::10.0.0.1",
		"64:ff9b::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
	} {
		assert.Error(t, (&Guard{}).Permit(netip.MustParseAddr(text)), "%s may be called", text)
		assert.NoError(t, (&Guard{AllowPrivate: true}).Permit(netip.MustParseAddr(text)), "%s", text)
	}
	for _, text := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "198.20.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:4860:4860::8888"} {
		assert.NoError(t, (&Guard{}).Permit(netip.MustParseAddr(text)), "%s", text)
	}
}

func TestWebhook_BadURL_Refused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "example.com", "//example.com/x", "ftp://example.com", "https://", "https:///x", "https://user:password@example.com/", "https://example.com/#x", "https:example.com", "https://exa mple.com/",
		"https://example.com/ x", "javascript:alert(1)", "file:///etc/passwd", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:10.0.0.1]:8443/", "http://169.254.169.254/latest/meta-data", "https://localhost/",
		"https://LOCALHOST:99/", "https://a.localhost./", "https://" + strings.Repeat("a", URLMax),
	} {
		assert.NotEmpty(t, checkURL(text, &Guard{}), "%.80q passes", text)
	}
	for _, text := range []string{"https://example.com", "http://example.com:8080/hooks?a=b", "https://[2606:4700::1111]/x", "https://1.1.1.1/"} {
		assert.Empty(t, checkURL(text, &Guard{}), "%s", text)
	}
	assert.Empty(t, checkURL("http://localhost:3000/hooks", &Guard{AllowPrivate: true}))
}

// If a name resolves to a private address, the call is refused when the connection is opened. The call is refused
// even if the name resolved to a public address before.
func TestSender_NameOfAPrivateAddress_NotCalled(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), ":")
	s := NewSender(&Guard{})
	t.Cleanup(s.Close)
	m, err := NewMessage(&events.Listed{Position: 1, Type: events.VerifyDrift, Data: []byte(`{}`)})
	require.NoError(t, err)
	for _, host := range []string{"localhost", "127.0.0.1", "[::ffff:127.0.0.1]"} {
		out := s.Send(t.Context(), "http://"+host+":"+port+"/", [][]byte{newSecret()}, m)
		assert.True(t, out.Error == "the name resolves to an address that is not permitted" && out.Status == 0,
			"%s: %+v", host, out)
	}
	assert.Empty(t, r.got(), "calls")
}
