package balances

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestMain(m *testing.M) {
	redis.SetLogger(mute{}) // it has one for all clients, and outages make it talk
	// A client that could not connect looks again after a second, and only then sees that it has been closed.
	testenv.Main(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}
