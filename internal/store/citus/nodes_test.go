package citus_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/store/citus"
)

// The first of three nodes answers. The second node does not answer. The third has no address, so it may not be used.
func TestNodes_OnlyThoseThatAnswer_AreAsked(t *testing.T) {
	t.Parallel()
	server := testenv.Must(t).Get(url.Parse(testenv.Postgres(t)))
	port := testenv.Must(t).Get(strconv.ParseUint(server.Port(), 10, 16))
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, but never answers
	require.NoError(t, err)
	defer silent.Close()
	at := []citus.Address{{Host: server.Hostname(), Port: uint16(port)}, {Host: "127.0.0.1", Port: uint16(silent.Addr().(*net.TCPAddr).Port)}, {}}
	groups := citus.GroupsAt(at...)
	opened := 0
	nodes := citus.NewNodes(groups, slog.New(slog.DiscardHandler), func(a citus.Address) (*pgxpool.Pool, error) {
		opened++
		to := *server
		to.Host = a.String()
		return pgxpool.New(t.Context(), to.String())
	})
	defer nodes.Close()
	of := map[int]string{} // one tenant of each group
	for n := 0; len(of) < len(at); n++ {
		tenant := fmt.Sprint("tenant-", n)
		of[groups.Of(tenant)] = tenant
	}
	assert.True(t, nodes.Of(of[0]) == nil, "a node is asked before it has answered")
	for range 2 {
		nodes.Reach(t.Context())
		asked := nodes.Of(of[0])
		require.True(t, asked != nil && asked.Ping(t.Context()) == nil && nodes.Of(of[1]) == nil && nodes.Of(of[2]) == nil &&
			nodes.Reached() == 1, "%d nodes are reached, want the one that answers", nodes.Reached())
		nodes.Lost(asked, errors.New("a test"))
		assert.True(t, nodes.Of(of[0]) == nil && nodes.Reached() == 0, "a lost node is asked")
	}
	assert.Equal(t, 2, opened, "pools for 2 nodes")
	var none *citus.Nodes
	none.Reach(t.Context())
	assert.True(t, none.Of("acme") == nil && none.Reached() == 0, "there are nodes without a cluster")
	none.Close()
}
