package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersion_Metric_HasVersionCommitGo(t *testing.T) {
	t.Parallel()
	in := serve(t, backends(t))
	response, err := http.Get(in.ops + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	_, line, _ := strings.Cut(string(text), "\nquotasvc_build_info{")
	line, _, _ = strings.Cut(line, "\n")
	for _, label := range []string{`commit="`, `version="`, `go_version="go1.`, "} 1"} {
		assert.Contains(t, line, label, "quotasvc_build_info{%s lacks %s", line, label)
	}
}
