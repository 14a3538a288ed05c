package testenv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// frozenFor is the time that the tests wait for an answer of a paused server. A running server would answer a hundred
// times in this time.
const frozenFor = 300 * time.Millisecond

func TestPostgresPrivate_Kill_KeepsRowsAndURL(t *testing.T) {
	t.Parallel()
	server := PostgresPrivate(t)
	conn := Connect(t, server.URL)
	Must(t).Get(conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 42 AS n"))
	server.Kill()
	if c, err := pgx.Connect(t.Context(), server.URL); err == nil {
		_ = c.Close(t.Context())
		t.Fatal("a killed server accepts connections")
	}
	server.Start()
	assert.Equal(t, 42, scan[int](t, Connect(t, server.URL), "SELECT n FROM kept"))
}

func TestPostgresPrivate_Pause_NoAnswerUntilResume(t *testing.T) {
	t.Parallel()
	server := PostgresPrivate(t)
	conn := Connect(t, server.URL)
	pid := scan[int](t, conn, "SELECT pg_backend_pid()")
	server.Pause()
	answered := make(chan int, 1)
	go func() {
		var backend int
		assert.NoError(t, conn.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&backend))
		answered <- backend
	}()
	ctx, cancel := context.WithTimeout(t.Context(), frozenFor)
	defer cancel()
	if c, err := pgx.Connect(ctx, server.URL); !errors.Is(err, context.DeadlineExceeded) {
		if err == nil {
			_ = c.Close(t.Context())
		}
		t.Errorf("a paused server answered: %v", err)
	}
	select {
	case <-answered:
		t.Error("a paused backend answered")
	default:
	}
	server.Resume()
	assert.Equal(t, pid, <-answered, "the backend")
}

func TestRedisPrivate_Kill_EmptyAtSameAddress(t *testing.T) {
	t.Parallel()
	server := RedisPrivate(t)
	c := client(t, server.Options())
	set(t, c, "lost")
	server.Kill()
	require.Error(t, c.Ping(t.Context()).Err(), "a killed server answers")
	server.Start()
	n, err := c.Exists(t.Context(), "lost").Result()
	assert.True(t, err == nil && n == 0, "lost = %d, %v", n, err)
}

func TestRedisPrivate_Pause_NoAnswerUntilResume(t *testing.T) {
	t.Parallel()
	server := RedisPrivate(t)
	o := server.Options()
	o.ContextTimeoutEnabled, o.MaxRetries = true, -1
	c := client(t, o)
	set(t, c, "kept")
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), frozenFor)
	defer cancel()
	assert.Error(t, c.Ping(ctx).Err(), "a paused server answered")
	server.Resume()
	n, err := c.Exists(t.Context(), "kept").Result()
	assert.True(t, err == nil && n == 1, "kept = %d, %v", n, err)
}

func TestPrivateServers_StopPaused_DoesNotHang(t *testing.T) {
	t.Parallel()
	p, r := PostgresPrivate(t), RedisPrivate(t)
	p.Pause()
	r.Pause()
	p.Stop()
	r.Stop()
}
