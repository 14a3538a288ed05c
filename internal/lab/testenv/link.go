package testenv

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Link is a network connection between clients and a server that can be slow or interrupted. During a Cut, connections
// stay open and no data arrives. Data that is sent during a Cut arrives after Heal, as if TCP sent the data again.
type Link struct {
	Addr   string
	Delay  atomic.Int64           // nanoseconds of delay for each piece of data, in each direction
	Server atomic.Pointer[string] // the address that new connections reach

	mu    sync.Mutex
	whole chan struct{} // closed while the link is not cut
	ctx   context.Context
}

// NewLink starts a link to the server at this address. The link ends with the test.
func NewLink(t testing.TB, server string) *Link {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &Link{whole: make(chan struct{}), ctx: ctx}
	close(l.whole)
	l.Server.Store(&server)
	l.Addr = acceptAll(t, l.serve)
	t.Cleanup(cancel) // runs before the clean-up that waits for open connections
	return l
}

// acceptAll accepts connections on the address that it returns, and calls serve for each, until the test ends. Then
// it waits until serve has returned for all open connections.
func acceptAll(t testing.TB, serve func(client net.Conn)) (address string) {
	t.Helper()
	ln := Must(t).Get((&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0"))
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = ln.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { serve(client) })
		}
	})
	return ln.Addr().String()
}

// NewLinkTo starts a link to the server of a URL. It returns the same URL with the address of the link.
func NewLinkTo(t testing.TB, server string) (*Link, string) {
	t.Helper()
	u := Must(t).Get(url.Parse(server))
	l := NewLink(t, u.Host)
	u.Host = l.Addr
	return l, u.String()
}

// Cut stops all traffic on the link until Heal.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

// Heal ends a Cut.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.whole)
}

// pass waits until the link is not cut, and then for Delay. It returns false if the test ends.
func (l *Link) pass() bool {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	select {
	case <-whole:
	case <-l.ctx.Done():
		return false
	}
	select {
	case <-time.After(time.Duration(l.Delay.Load())):
		return true
	case <-l.ctx.Done():
		return false
	}
}

func (l *Link) serve(client net.Conn) {
	defer client.Close()
	if !l.pass() {
		return
	}
	server, err := (&net.Dialer{}).DialContext(l.ctx, "tcp", *l.Server.Load())
	if err != nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(l.ctx, func() {
		_ = client.Close()
		_ = server.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { l.copy(server, client) })
	both.Go(func() { l.copy(client, server) })
	both.Wait()
}

func (l *Link) copy(to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if !l.pass() {
			break
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
}
