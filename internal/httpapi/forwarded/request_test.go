package forwarded

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/body"
)

func TestRead_HeaderTwice_OneFault(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"X-Original-Method", "X-Original-URI", HeaderMode, HeaderRule} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/authorize/nginx", http.NoBody)
		require.NoError(t, err)
		r.Header = http.Header{HeaderTenant: {"acme"}, HeaderMeter: {"calls"}}
		r.Header.Add(name, "one")
		r.Header.Add(name, "two")
		_, err = Gateways()["nginx"].Read(r)
		assert.Equal(t, &body.Error{Faults: []body.Fault{{Field: name, Message: "must appear once"}}}, err)
	}
}
