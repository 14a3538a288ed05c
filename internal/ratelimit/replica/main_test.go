package replica

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func TestMain(m *testing.M) {
	redis.SetLogger(mute{}) // go-redis has one logger for all clients, which would log every outage of a test
	// A client that could not connect tries again after a second. Only then does its goroutine notice that the client
	// was closed, so the leak check ignores this goroutine.
	testenv.Main(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}

// patientClient returns a client whose calls do not time out on a busy machine.
func patientClient(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	opts := *o
	opts.MaxRetries, opts.DialerRetries, opts.ContextTimeoutEnabled, opts.DisableIdentity = -1, 1, true, true
	const patience = testenv.Patience
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = patience, patience, patience, patience
	c := redis.NewClient(&opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// productionClient returns a client with the options of the service's own client.
func productionClient(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	c := testenv.Must(t).Get(redisstore.NewClient(url))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// storeOn returns a store on client. At the end of the test the store is stopped before the client is closed.
func storeOn(t testing.TB, client redis.UniversalClient) *redisstore.Store {
	t.Helper()
	store := redisstore.New(client, redisstore.Config{})
	t.Cleanup(func() {
		assert.NoError(t, store.Stop(context.Background()), "stop")
	})
	return store
}

// lines is an io.Writer for a log, with a method that searches the written lines.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) containing(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.all {
		if strings.Contains(line, s) {
			n++
		}
	}
	return n
}
