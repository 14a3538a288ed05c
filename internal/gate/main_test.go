package gate

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) {
	redis.SetLogger(mute{}) // all clients share one logger, and outages fill it
	// If a closed client could not connect, its last goroutine ends up to a second later.
	testenv.Main(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}
