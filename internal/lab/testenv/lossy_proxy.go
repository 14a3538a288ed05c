package testenv

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// LossyProxy forwards connections to a server. While Lose is set, it drops each reply to a script call and closes the
// connection. The server has then executed the script, and the client cannot know whether it has.
type LossyProxy struct {
	Addr   string
	Lose   atomic.Bool            // whether replies to scripts are dropped
	Server atomic.Pointer[string] // the address that new connections reach
}

// NewLossyProxy starts a proxy in front of the server at this address. The proxy ends with the test.
func NewLossyProxy(t testing.TB, server string) *LossyProxy {
	t.Helper()
	p := &LossyProxy{}
	p.Server.Store(&server)
	p.Addr = acceptAll(t, func(client net.Conn) { p.serve(client, *p.Server.Load()) })
	return p
}

func (p *LossyProxy) serve(client net.Conn, server string) {
	upstream, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", server)
	if err != nil {
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	var script atomic.Bool
	both.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := client.Read(buf)
			if strings.Contains(strings.ToLower(string(buf[:n])), "eval") {
				script.Store(true)
			}
			if _, werr := upstream.Write(buf[:n]); err != nil || werr != nil {
				break
			}
		}
		_ = upstream.Close()
	})
	both.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := upstream.Read(buf)
			if err != nil || script.Load() && p.Lose.Load() {
				break
			}
			if _, err := client.Write(buf[:n]); err != nil {
				break
			}
		}
		_ = client.Close()
	})
	both.Wait()
}
