package localstack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// redisCommand sends one command and returns the first line of the reply.
func redisCommand(t *testing.T, r *Redis, command string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp4", r.Addr(), testLimit)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(testLimit)))
	_, err = fmt.Fprintf(conn, "AUTH %s\r\n%s\r\n", r.password, command)
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	require.True(t, err == nil && line == "+OK\r\n", "AUTH: %q, %v", line, err)
	line, err = in.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

func TestRedisInfo_Reply_Bounded(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"$3\r\nabc\r\n":                 "abc",
		"-LOADING loading the data\r\n": "error",
		"$-1\r\n":                       "error",
		"$99999999\r\n":                 "error",
		"$x\r\n":                        "error",
		"$5\r\nabc":                     "error",
		"":                              "error",
	} {
		got, err := readBulk(bufio.NewReader(strings.NewReader(reply)))
		if err != nil {
			got = "error"
		}
		assert.True(t, got == want, "%q gives %q, want %q", reply, got, want)
	}
}

// During a restart, other goroutines may read the address. The race detector fails this test if the restart writes
// data from which the address is read.
func TestServer_Address_ReadableDuringRestart(t *testing.T) {
	t.Parallel()
	p, r := startPostgres(t, PostgresConfig{}), startRedis(t, RedisConfig{})
	before := p.URL() + r.URL()
	restarted := make(chan error)
	go func() {
		for _, server := range []interface {
			Stop(ctx context.Context) error
			Start(ctx context.Context) error
		}{p, r} {
			restarted <- errors.Join(server.Stop(t.Context()), server.Start(t.Context()))
		}
	}()
	for left := 2; left > 0; {
		select {
		case err := <-restarted:
			assert.NoError(t, err)
			left--
		default:
			_, _ = r.Info(t.Context(), "server") // the server may be down
			require.Equal(t, before, p.URL()+r.URL(), "%s has become", before)
		}
	}
}
