package testenv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// frozenFor is the time that the tests wait for an answer of a paused server. A running server would answer a hundred
// times in it.
const frozenFor = 300 * time.Millisecond

func TestPostgresPrivate_Kill_KeepsRowsAndURL(t *testing.T) {
	t.Parallel()
	server := PostgresPrivate(t)
	conn := connect(t, server.URL)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 42 AS n"); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if c, err := pgx.Connect(t.Context(), server.URL); err == nil {
		_ = c.Close(t.Context())
		t.Fatal("a killed server accepts connections")
	}
	server.Start()
	if n := scan[int](t, connect(t, server.URL), "SELECT n FROM kept"); n != 42 {
		t.Errorf("n = %d", n)
	}
}

func TestPostgresPrivate_Pause_NoAnswerUntilResume(t *testing.T) {
	t.Parallel()
	server := PostgresPrivate(t)
	conn := connect(t, server.URL)
	pid := scan[int](t, conn, "SELECT pg_backend_pid()")
	server.Pause()
	answered := make(chan int, 1)
	go func() { answered <- scan[int](t, conn, "SELECT pg_backend_pid()") }()
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
	if got := <-answered; got != pid {
		t.Errorf("backend %d, want the same as before, %d", got, pid)
	}
}

func TestRedisPrivate_Kill_EmptyAtSameAddress(t *testing.T) {
	t.Parallel()
	server := RedisPrivate(t)
	c := client(t, server.Options())
	set(t, c, "lost")
	server.Kill()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Fatal("a killed server answers")
	}
	server.Start()
	if n, err := c.Exists(t.Context(), "lost").Result(); err != nil || n != 0 {
		t.Errorf("lost = %d, %v", n, err)
	}
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
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a paused server answered")
	}
	server.Resume()
	if n, err := c.Exists(t.Context(), "kept").Result(); err != nil || n != 1 {
		t.Errorf("kept = %d, %v", n, err)
	}
}

func TestPrivateServers_StopPaused_DoesNotHang(t *testing.T) {
	t.Parallel()
	p, r := PostgresPrivate(t), RedisPrivate(t)
	p.Pause()
	r.Pause()
	p.Stop()
	r.Stop()
}
