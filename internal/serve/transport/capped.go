package transport

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
	"github.com/quotasvc/quotasvc/internal/kit/proven"
	"github.com/quotasvc/quotasvc/internal/kit/recent"
)

// lastMax bounds the connections that are accepted while a listener closes. By default, the kernel queues at most
// 4096 connections.
const lastMax = 4096

// keptShare says which part of a listener's connections is kept for known addresses: a tenth.
const keptShare = 10

// knownMax bounds the known addresses that are remembered. They take 60 bytes each.
const knownMax = 10_000

// metrics are the metrics of the connections of all listeners.
type metrics struct {
	open, most *prometheus.GaugeVec
	refused    *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{
		open: metric.GaugeVec(reg, "quotasvc_http_connections",
			"Open connections of clients, by listener (api, ops, envoy_rls, console).", "listener"),
		most: metric.GaugeVec(reg, "quotasvc_http_connections_max",
			"Maximum number of connections at a time, by listener.", "listener"),
		refused: metric.CounterVec(reg, "quotasvc_http_connections_refused_total",
			"Connections closed at once because there were too many, by listener.", "listener"),
	}
}

// capped is a listener that closes every connection beyond a maximum at once. Otherwise such connections would wait in
// the kernel's queue, and a load balancer would wait instead of trying the next instance. The last tenth of the
// connections is for known addresses.
type capped struct {
	net.Listener

	most    int64
	count   atomic.Int64
	known   *recent.Cache[netip.Addr, struct{}] // nil: no connections are kept for known addresses
	closing sync.Mutex
	last    chan net.Conn // connections that were in the kernel's queue when the listener closed
	open    prometheus.Gauge
	refused prometheus.Counter
}

func newCapped(l net.Listener, most int, m *metrics, name string, known *recent.Cache[netip.Addr, struct{}]) *capped {
	m.most.WithLabelValues(name).Set(float64(most))
	return &capped{
		Listener: l, most: int64(most), known: known, last: make(chan net.Conn, lastMax),
		open: m.open.WithLabelValues(name), refused: m.refused.WithLabelValues(name),
	}
}

// Accept implements net.Listener.
func (c *capped) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			c.closing.Lock()   // waits while Close collects the last connections
			c.closing.Unlock() //nolint:staticcheck // no data is guarded: this waits for Close
			select {
			case conn = <-c.last:
			default:
				return nil, err
			}
		}
		if c.count.Add(1) <= c.mostFor(conn) {
			c.open.Inc()
			return conn, nil
		}
		c.count.Add(-1)
		c.refused.Inc()
		_ = conn.Close() // no data was sent or received
	}
}

// mostFor returns the number of connections up to which a new connection is accepted.
func (c *capped) mostFor(conn net.Conn) int64 {
	if c.known == nil {
		return c.most
	}
	if _, known := c.known.Peek(addressOf(conn.RemoteAddr())); known {
		return c.most
	}
	return c.most - c.most/keptShare
}

// addressOf returns the IP address of a remote address. It returns the zero address if there is none.
func addressOf(at net.Addr) netip.Addr {
	port, _ := netip.ParseAddrPort(at.String()) // the zero address if it has none
	return port.Addr().Unmap()
}

// Close implements net.Listener. It first accepts the connections in the kernel's queue. If the socket were closed
// first, the kernel would reset them. A load balancer does not repeat a request that it has sent on such a connection.
// Only two system calls are between the last accept and the end of listening.
func (c *capped) Close() error {
	c.closing.Lock()
	defer c.closing.Unlock()
	if l, ok := c.Listener.(*net.TCPListener); ok {
		if raw, err := l.SyscallConn(); err == nil {
			_ = raw.Control(c.takeWaiting) // fails only if the listener is closed already
		}
	}
	return c.Listener.Close()
}

func (c *capped) takeWaiting(listening uintptr) {
	var taken []int
	for len(taken) < lastMax {
		fd, _, err := syscall.Accept(int(listening)) // the socket does not block
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	_ = syscall.Shutdown(int(listening), syscall.SHUT_RDWR)
	for _, fd := range taken {
		syscall.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "connection")
		if conn, err := net.FileConn(file); err == nil { // conn has its own copy of the descriptor
			c.last <- conn
		}
		_ = file.Close()
	}
}

// observe is the ConnState hook of a server. It counts the end of each accepted connection once.
func (c *capped) observe(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		c.ended()
	}
}

func (c *capped) ended() {
	c.count.Add(-1)
	c.open.Dec()
}

// tracked is a capped listener for servers without a ConnState hook. Its connections report when they are closed, and
// their remote addresses have the visitor. A connection is closed if its visitor is not known after `within`.
type tracked struct {
	*capped

	visitor func(net.Addr) *proven.Addr
	within  time.Duration // 0: no limit
}

// Accept implements net.Listener.
func (t tracked) Accept() (net.Conn, error) {
	conn, err := t.capped.Accept()
	if err != nil {
		return nil, err
	}
	made := &trackedConn{Conn: conn, ended: sync.OnceFunc(t.ended), visitor: t.visitor(conn.RemoteAddr())}
	if t.within > 0 {
		made.late = time.AfterFunc(t.within, func() {
			if !made.visitor.Known() {
				_ = made.Conn.Close() // the server then closes made
			}
		})
	}
	return made, nil
}

type trackedConn struct {
	net.Conn

	ended   func()
	visitor *proven.Addr
	late    *time.Timer // nil: no limit
}

// RemoteAddr implements net.Conn.
func (c *trackedConn) RemoteAddr() net.Addr { return c.visitor }

// Close implements net.Conn.
func (c *trackedConn) Close() error {
	defer c.ended()
	if c.late != nil {
		c.late.Stop()
	}
	return c.Conn.Close()
}
