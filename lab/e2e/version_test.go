package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVersion_Metric_HasVersionCommitGo(t *testing.T) {
	t.Parallel()
	in := serve(t, backends(t))
	_, line, _ := strings.Cut(in.metrics(t), "\nquotasvc_build_info{")
	line, _, _ = strings.Cut(line, "\n")
	for _, label := range []string{`commit="`, `version="`, `go_version="go1.`, "} 1"} {
		assert.Contains(t, line, label, "quotasvc_build_info{%s lacks %s", line, label)
	}
}
