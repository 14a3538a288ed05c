package redisstore

import (
	"reflect"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestMain(m *testing.M) { testenv.MainWithRedis(m) }

// patientClient returns a client like those of NewClient, except that its timeouts are long.
func patientClient(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	opts := baseOptions()
	opts.Addrs, opts.Username, opts.Password = []string{o.Addr}, o.Username, o.Password
	const patience = testenv.Patience
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = patience, patience, patience, patience
	return testenv.CloseAtEnd(t, redis.NewClient(opts.Simple()))
}

// storeOn returns a store that is stopped before its client is closed.
func storeOn(t testing.TB, client redis.UniversalClient, cfg Config) *Store {
	t.Helper()
	s := New(client, cfg)
	testenv.StopAtEnd(t, s.Stop)
	return s
}

// holds reports whether s has a non-zero element. It also looks at elements beyond the length of s.
func holds[T any](s []T) bool {
	return slices.ContainsFunc(s[:cap(s)], func(x T) bool { return !reflect.ValueOf(&x).Elem().IsZero() })
}
