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

func TestRatio_Rounds_ComparedWithinEach(t *testing.T) {
	t.Parallel()
	// The machine was half as fast in the second round. The ratio must not change.
	r := Results{Variants: []Variant{{Name: "a", Rates: []float64{40, 20, 44}}, {Name: "b", Rates: []float64{10, 5, 10}}}}
	got := r.ratio("a to b", "a", "b", 4)
	require.InDelta(t, 4.0, got.Measured, 1e-9)
	require.InDelta(t, 4.4, got.High, 1e-9)
	require.True(t, got.Pass)
	require.False(t, r.ratio("a to b", "a", "b", 4.1).Pass)
}
