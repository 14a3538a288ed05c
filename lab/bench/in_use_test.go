package bench

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChecksInBatches_Route_FoundOrNotThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		there  bool
		fails  bool
	}{
		"answers":        {200, `{"results":[{"allowed":true}]}`, true, false},
		"older binary":   {404, `{"status":404,"code":"not_found"}`, false, false},
		"another method": {405, `{}`, false, false},
		"refused inside": {200, `{"results":[{"status":404,"code":"unknown_tenant"}]}`, false, true},
		"broken":         {500, `{}`, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			t.Cleanup(http.DefaultClient.CloseIdleConnections)
			r := &runner{stand: &stand{service: &site{api: at}}}
			there, err := r.checksInBatches(t.Context())
			require.Equal(t, c.fails, err != nil, "%v", err)
			require.Equal(t, c.there, there)
		})
	}
}

func TestEach_TenantsInUse_OneRequestEach(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	at := serve(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		mu.Lock()
		seen[string(body)]++
		mu.Unlock()
		_, _ = w.Write([]byte("{}"))
	})
	s, err := new(runner).each(context.Background(), &site{api: at}, newTemplate("/v1/check", "", tenantMark, 1), 4, tenantRange{100, 50})
	require.NoError(t, err)
	require.EqualValues(t, 50, s.units)
	require.Len(t, seen, 50)
	for i := range 50 {
		require.Equal(t, 1, seen[tenantID(100+i)])
	}
}
