package localstack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// maxReplyBytes is the maximum length of a reply to INFO. A section of INFO has a few KiB.
const maxReplyBytes = 64 << 10

// probe reads the server's process id and compares it with the child's.
func (r *Redis) probe(ctx context.Context) error {
	info, err := r.Info(ctx, "server")
	if err != nil {
		return err
	}
	for line := range strings.Lines(info) {
		if pid, ok := strings.CutPrefix(strings.TrimSpace(line), "process_id:"); ok {
			if pid != strconv.Itoa(r.proc.pid) {
				return fmt.Errorf("a server on port %d answers that is not ours (pid %s)", r.port, pid)
			}
			return nil
		}
	}
	return errors.New("INFO server names no process_id")
}

// Info returns a section of the server's INFO, which it reads on a separate connection. It implements the protocol
// itself. The three commands that it needs do not justify a client library, which every user of this package would
// link.
func (r *Redis) Info(ctx context.Context, section string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp4", r.Addr())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	in := bufio.NewReader(io.LimitReader(conn, maxReplyBytes))
	// The server sends three replies. While it loads its data, it refuses PING, but not INFO.
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\nPING\r\nINFO %s\r\n", r.password, section); err != nil {
		return "", err
	}
	for _, want := range []string{"+OK", "+PONG"} {
		if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
			return "", errors.Join(fmt.Errorf("answered %q instead of %s", line, want), err)
		}
	}
	return readBulk(in)
}

// readBulk reads one bulk string: "$<length>\r\n<bytes>\r\n".
func readBulk(in *bufio.Reader) (string, error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	length, ok := strings.CutPrefix(strings.TrimSpace(head), "$")
	if !ok {
		return "", fmt.Errorf("INFO answered %q", strings.TrimSpace(head))
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > maxReplyBytes {
		return "", fmt.Errorf("INFO answered %q", strings.TrimSpace(head))
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(in, body); err != nil {
		return "", err
	}
	return string(body), nil
}
