package deploy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// registry answers as a registry of images does: it wants a token, and tells the digest of a manifest.
func registry(t *testing.T, digest string) (host string) {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /token", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"token":"for %s of %s"}`, r.FormValue("scope"), r.FormValue("service"))
	})
	mux.HandleFunc("HEAD /v2/library/golang/manifests/1.27", func(w http.ResponseWriter, r *http.Request) {
		answer := w.Header()
		if r.Header.Get("Authorization") != "Bearer for repository:library/golang:pull of images" {
			answer.Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="images"`, server.URL))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		assert.Contains(t, r.Header.Get("Accept"), "image.index", "it asks for the image of one kind of processor")
		answer.Set("Docker-Content-Digest", digest)
	})
	return strings.TrimPrefix(server.URL, "http://")
}

// pinImages runs the script on a Dockerfile and a compose file, and returns both with its output.
func pinImages(t *testing.T, dockerfile, compose string) (pinned, said string, err error) {
	t.Helper()
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "Dockerfile"), filepath.Join(dir, "compose.yaml")}
	require.NoError(t, os.WriteFile(files[0], []byte(dockerfile), 0o600))
	require.NoError(t, os.WriteFile(files[1], []byte(compose), 0o600))
	script := filepath.Join(root, "scripts", "pin-images.sh")
	out, err := exec.CommandContext(t.Context(), script, files...).CombinedOutput()
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		pinned += string(text)
	}
	return pinned, string(out), err
}

func TestPinImages_RegistryAnswers_DigestsRenewed(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("ab", 32)
	host := registry(t, digest)
	image := host + "/library/golang:1.27"
	const dockerfile = "ARG BUILD_IMAGE=%s\nFROM ${BUILD_IMAGE} AS build\n"
	const compose = "  a:\n    image: quotasvc:dev\n  b:\n    image: %s\n  # not other/%s\n"
	for _, before := range []string{image, image + "@sha256:" + strings.Repeat("0", 64)} {
		pinned, said, err := pinImages(t, fmt.Sprintf(dockerfile, before), fmt.Sprintf(compose, before, image))
		require.NoError(t, err, "%s", said)
		after := image + "@" + digest
		assert.Equal(t, after+"\n", said)
		assert.Equal(t, fmt.Sprintf(dockerfile, after)+fmt.Sprintf(compose, after, image), pinned)
	}
}

func TestPinImages_NoRegistry_OneLineAndNoChange(t *testing.T) {
	t.Parallel()
	const gone, unknown = "127.0.0.1:9/golang:1.27", "/library/golang:1.28"
	host := registry(t, "")
	for image, why := range map[string]string{gone: "curl: (7)", host + unknown: "the registry answers HTTP/1.1 404"} {
		dockerfile := "ARG BUILD_IMAGE=" + image + "\n"
		pinned, said, err := pinImages(t, dockerfile, "services: {}\n")
		assert.Error(t, err)
		assert.Equal(t, dockerfile+"services: {}\n", pinned)
		assert.Equal(t, 1, strings.Count(said, "\n"), "%s", said)
		assert.Contains(t, said, "no digest of "+image+": "+why)
	}
}
