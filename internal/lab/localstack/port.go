package localstack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// loopback is the only address on which a server listens.
const loopback = "127.0.0.1"

// A free port is chosen below the range of outgoing connections (Linux from 32768, macOS and BSD from 49152). In that
// range, a client that keeps dialling a stopped server can get the server's port for its own side. It then connects
// to itself, and blocks the restart.
const (
	firstFreePort = 20000
	lastFreePort  = 32000

	// portTries is the maximum number of ports that are tried. If none of so many ports can be bound, the cause is not
	// that all of them are in use.
	portTries = 64
)

// PortTakenError reports a configured port that is in use.
type PortTakenError struct {
	Server  string // "PostgreSQL" or "Redis"
	Port    int
	Setting string // name of the setting that changes the port; may be empty
}

func (e *PortTakenError) Error() string {
	text := fmt.Sprintf("port %d on %s, wanted for %s, is in use by another program", e.Port, loopback, e.Server)
	if e.Setting != "" {
		text += ": stop that program, or choose another port with " + e.Setting
	}
	return text
}

// choosePort returns want if it is free, or any free port if want is 0.
func choosePort(want int, server, setting string) (int, error) {
	if want != 0 {
		err := tryPort(want)
		if errors.Is(err, syscall.EADDRINUSE) {
			return 0, &PortTakenError{Server: server, Port: want, Setting: setting}
		}
		if err != nil {
			return 0, fmt.Errorf("port for %s: %w", server, err)
		}
		return want, nil
	}
	var err error
	for range portTries {
		port := firstFreePort + rand.IntN(lastFreePort-firstFreePort)
		if err = tryPort(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port for %s: %w", server, err)
}

func tryPort(port int) error {
	var config net.ListenConfig
	// Binding to loopback never waits, so it needs no context.
	l, err := config.Listen(context.Background(), "tcp4", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
