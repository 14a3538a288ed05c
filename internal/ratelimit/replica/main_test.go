package replica

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func TestMain(m *testing.M) { testenv.MainWithRedis(m) }

// patientClient returns a client whose calls do not time out on a busy machine.
func patientClient(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	opts := *o
	opts.MaxRetries, opts.DialerRetries, opts.ContextTimeoutEnabled, opts.DisableIdentity = -1, 1, true, true
	const patience = testenv.Patience
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = patience, patience, patience, patience
	return testenv.CloseAtEnd(t, redis.NewClient(&opts))
}

// productionClient returns a client with the options of the service's own client.
func productionClient(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	return testenv.CloseAtEnd(t, testenv.Must(t).Get(redisstore.NewClient(url)))
}

// storeOn returns a store on client. At the end of the test the store is stopped before the client is closed.
func storeOn(t testing.TB, client redis.UniversalClient) *redisstore.Store {
	t.Helper()
	store := redisstore.New(client, redisstore.Config{})
	testenv.StopAtEnd(t, store.Stop)
	return store
}
