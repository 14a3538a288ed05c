package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestVersion_Metric_HasVersionCommitGo(t *testing.T) {
	t.Parallel()
	in := serve(t, backends(t))
	response, err := http.Get(in.ops + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "\nquotasvc_build_info{")
	line, _, _ = strings.Cut(line, "\n")
	for _, label := range []string{`commit="`, `version="`, `go_version="go1.`, "} 1"} {
		if !strings.Contains(line, label) {
			t.Errorf("quotasvc_build_info{%s lacks %s", line, label)
		}
	}
}
