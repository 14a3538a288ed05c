package testenv

import (
	"context"
	"io"
	"net"
	"regexp"
	"sync"
	"testing"
)

// Disguise starts a proxy in front of a server and returns its address. In what the server sends, the proxy replaces
// each match of a pattern by another text of the same length, so that a server passes for one with another version. The
// proxy ends with the test.
func Disguise(t testing.TB, server string, pattern *regexp.Regexp, text string) (address string) {
	t.Helper()
	return acceptAll(t, func(client net.Conn) {
		upstream, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", server)
		if err != nil {
			_ = client.Close()
			return
		}
		var both sync.WaitGroup
		both.Go(func() {
			_, _ = io.Copy(upstream, client)
			_ = upstream.Close()
		})
		both.Go(func() {
			defer client.Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := upstream.Read(buf)
				if _, failed := client.Write(pattern.ReplaceAll(buf[:n], []byte(text))); err != nil || failed != nil {
					return
				}
			}
		})
		both.Wait()
	})
}
