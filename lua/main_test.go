package lua_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func connect(t *testing.T) *redis.Client {
	t.Helper()
	c := redis.NewClient(testenv.Redis(t))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// run runs a script and returns the integers of its reply.
func run(t *testing.T, client *redis.Client, script string, keys []string, args ...any) ([]int64, error) {
	t.Helper()
	return client.Eval(context.Background(), script, keys, args...).Int64Slice()
}

// contents returns all keys of the database with their values as text, so that tests can compare them.
func contents(t *testing.T, client *redis.Client) string {
	t.Helper()
	ctx := context.Background()
	keys, err := client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	all := make(map[string]string)
	for _, key := range keys {
		v, err := client.Dump(ctx, key).Result()
		require.False(t, err != nil && !errors.Is(err, redis.Nil), err)
		all[key] = v
	}
	return fmt.Sprint(all) // fmt prints maps in the order of their keys
}
