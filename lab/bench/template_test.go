package bench

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemplate_Requests_DifferInKeyAndTenantOnly(t *testing.T) {
	t.Parallel()
	const size, tenants = 3, 7
	tm := newTemplate("/v1/debits/batch", bearer("k"), batchBody(size), size)
	seen := map[string]bool{}
	for n := range uint64(1000) {
		request := bytes.Clone(tm.text)
		tm.fill(request, n, tenants)
		parsed, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		require.NoError(t, err)
		body, err := io.ReadAll(parsed.Body)
		require.NoError(t, err)
		require.NotContains(t, string(body), keyMark)
		require.NotContains(t, string(body), tenantMark)
		require.Len(t, body, int(parsed.ContentLength))
		for _, part := range strings.Split(string(body), `"idempotency_key":"`)[1:] {
			key := part[:len(keyMark)]
			require.False(t, seen[key], "key %s is used twice", key)
			seen[key] = true
			_, rest, _ := strings.Cut(part, `"tenant":"`)
			require.Less(t, rest[:len(tenantMark)], tenantID(tenants))
		}
	}
	require.Len(t, seen, 1000*size)
}

func TestTemplate_InOrder_EachTenantOnce(t *testing.T) {
	t.Parallel()
	tm := newTemplate("/v1/debits/batch", "", batchBody(4), 4)
	tm.inOrder, tm.first = true, 100
	for n := range uint64(5) {
		request := bytes.Clone(tm.text)
		tm.fill(request, n, 1)
		for i := range 4 {
			require.Contains(t, string(request), `"`+tenantID(100+int(n)*4+i)+`"`)
		}
	}
}
