package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

const readBuffer = 16 << 10

// client is a client with one keep-alive connection. It writes prebuilt requests and parses as little of the answers
// as possible, because the load generator shares the cores with the server.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte // a copy of the text of the template in use
	of   *template

	body []byte // body of the last answer to a request with many debits or checks

	local   bool // whether the limits of the last answer were decided without Redis
	refused int  // debits or checks that the last answer refused
}

// dial opens n connections.
func dial(ctx context.Context, address string, n int) (_ []*client, err error) {
	out := make([]*client, 0, n)
	defer func() {
		if err != nil {
			closeAll(out)
		}
	}()
	var d net.Dialer
	for range n {
		conn, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("connect to %s: %w", address, err)
		}
		out = append(out, &client{conn: conn, in: bufio.NewReaderSize(conn, readBuffer)})
	}
	return out, nil
}

func closeAll(clients []*client) {
	for _, c := range clients {
		_ = c.conn.Close() // no request is in progress
	}
}

// send sends request number n of the template t and reads the status of its answer.
func (c *client) send(t *template, n uint64, tenants int) (status int, err error) {
	if c.of != t {
		c.of, c.out = t, append(c.out[:0], t.text...)
	}
	t.fill(c.out, n, tenants)
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, fmt.Errorf("send: %w", err)
	}
	return c.receive()
}

var (
	contentLength = []byte("content-length:")
	limitMode     = []byte("x-ratelimit-mode:")
	errFraming    = errors.New("the answer is not HTTP/1.1 with a Content-Length")
)

func (c *client) receive() (status int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, fmt.Errorf("receive: %w", err)
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return 0, errFraming
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, errFraming
	}
	length := -1
	c.local = false
	for {
		line, err = c.in.ReadSlice('\n')
		if err != nil {
			return 0, fmt.Errorf("receive: %w", err)
		}
		if len(line) <= 2 {
			break
		}
		if line[0]|0x20 == 'c' && len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, errFraming
			}
		}
		if line[0]|0x20 == 'x' && len(line) > len(limitMode) && bytes.EqualFold(line[:len(limitMode)], limitMode) {
			c.local = string(bytes.TrimSpace(line[len(limitMode):])) == "local"
		}
	}
	if length < 0 {
		return 0, errFraming
	}
	return status, c.finish(length)
}

// refusal is a text that occurs in each refused debit or check of an answer, and not in an accepted one.
var refusal = []byte(`"code":`)

// finish reads the body of an answer. It searches the body for refusals only if the request has many debits or checks,
// because each debit or check then has its own status.
func (c *client) finish(length int) (err error) {
	c.refused = 0
	if c.of == nil || c.of.debits == 1 {
		_, err = c.in.Discard(length)
	} else {
		c.body = append(c.body[:0], make([]byte, length)...)
		_, err = io.ReadFull(c.in, c.body)
		c.refused = bytes.Count(c.body, refusal)
	}
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	return nil
}

// outcome returns the result of the debits or checks in an answer.
func (c *client) outcome(status int, t *template) outcome {
	return outcome{status: status, units: t.debits - c.refused, refused: c.refused}
}
