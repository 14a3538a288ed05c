package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// In the tests pip takes our package from the release and all others from the system, so it needs no package index.
const (
	venvOfPage = "-m venv .venv"
	venvOfTest = "-m venv --system-site-packages .venv"
)

// packages returns an environment in which go, npm and pip install our packages from the release, and others from where
// this machine gets them. Nothing that they install stays on the machine.
func (r *release) packages(t *testing.T) []string {
	t.Helper()
	fetched := "file://" + printed(t, "go", "env", "GOMODCACHE") + "/cache/download"
	proxies := r.goproxy + "," + fetched + "," + printed(t, "go", "env", "GOPROXY")
	env := append(withoutSettings(os.Environ()), "GOPROXY="+proxies, "GOSUMDB=off", "GOWORK=off", "GOTOOLCHAIN=local",
		"GOMODCACHE="+t.TempDir(), "GOFLAGS="+printed(t, "go", "env", "GOFLAGS")+" -modcacherw -buildvcs=false")
	if hasScene("node") {
		env = append(env, "npm_config_registry="+r.npmRegistry(t))
	}
	return append(env, "PIP_NO_INDEX=1", "PIP_NO_DEPS=1", "PIP_FIND_LINKS="+r.dist)
}

// printed returns what a command prints.
func printed(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...) //nolint:gosec // the commands of the tests
	out, err := cmd.Output()
	require.NoError(t, err, "%s", command)
	return strings.TrimSpace(string(out))
}

// npmRegistry serves our package from the release. For other packages it names this machine's registry.
func (r *release) npmRegistry(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("quotasvc-%s.tgz", releaseNumber)
	tarball := testenv.Must(t).Get(os.ReadFile(filepath.Join(r.dist, name)))
	manifest := map[string]any{}
	text := printed(t, "tar", "xzOf", filepath.Join(r.dist, name), "package/package.json")
	require.NoError(t, json.Unmarshal([]byte(text), &manifest))
	upstream := printed(t, "npm", "config", "get", "registry")
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	manifest["dist"] = object{"tarball": server.URL + "/quotasvc/-/" + name}
	mux.HandleFunc("GET /quotasvc", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(object{
			"name": "quotasvc", "dist-tags": object{"latest": releaseNumber},
			"versions": object{releaseNumber: manifest},
		})
	})
	mux.HandleFunc("GET /quotasvc/-/"+name, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(tarball) })
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, strings.TrimSuffix(upstream, "/")+req.URL.RequestURI(), http.StatusTemporaryRedirect)
	})
	return server.URL + "/"
}

// The page as the release has it: its commands install this release, by its version, and nothing else.
func TestInstall_Page_FromTheReleaseAlone(t *testing.T) {
	t.Parallel()
	programOf(t, "curl")
	r := theRelease(t)
	server := httptest.NewServer(http.FileServer(http.Dir(r.dist)))
	t.Cleanup(server.Close)
	dir, bin, units := t.TempDir(), t.TempDir(), t.TempDir()
	tty := openTerminal(t, dir, append(r.packages(t), "PATH="+bin+":"+pathOf("python")))
	here := strings.NewReplacer("https://github.com/quotasvc/quotasvc/releases/download/v"+releaseNumber, server.URL,
		"linux_amd64", runtime.GOOS+"_"+runtime.GOARCH, "sudo systemctl daemon-reload", "", "sudo ", "",
		"/usr/local/bin/", bin+"/", "/etc/systemd/system/", units+"/", venvOfPage, venvOfTest)
	for _, block := range markedBlocks(t, filepath.Join(r.clone, "docs/install.md")) {
		if block.has("node") && !hasScene("node") || block.has("python") && !hasScene("python") {
			continue
		}
		tty.use(block.said(here))
	}
	tty.leave()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("the units are NOT CHECKED: there is no systemd-analyze here")
		return
	}
	out, err := exec.CommandContext(t.Context(), "../../scripts/verify-units.sh", units).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Files that the page names without a command that a test runs are in the archive.
func TestInstall_Page_FilesAreInTheArchive(t *testing.T) {
	t.Parallel()
	r := theRelease(t)
	dir := r.unpack(t, t.TempDir())
	page := string(testenv.Must(t).Get(os.ReadFile(filepath.Join(r.clone, "docs/install.md"))))
	named := regexp.MustCompile("[`fk] ?(deploy/[a-z/]+|docker-compose.yml)").FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		_, err := os.Stat(filepath.Join(dir, m[1]))
		assert.NoError(t, err)
	}
}

// The workflow calls targets that exist, and publishes under the names that the pages install.
func TestInstall_Workflow_PublishesWhatThePagesInstall(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		return string(testenv.Must(t).Get(os.ReadFile(filepath.Join("../..", name))))
	}
	workflow, makefile := read(".github/workflows/release.yml"), read("Makefile")
	calls := regexp.MustCompile(`make ([a-z-]+)`).FindAllStringSubmatch(workflow, -1)
	require.NotEmpty(t, calls)
	for _, call := range calls {
		assert.Contains(t, makefile, "\n"+call[1]+":", "the workflow calls make %s", call[1])
	}
	for _, part := range []string{
		"make release VERSION=", "attest-build-provenance", "npm publish --provenance", "gh-action-pypi-publish",
		"gh release create", "make image-release IMAGE=ghcr.io/quotasvc/quotasvc:",
	} {
		assert.Contains(t, workflow, part)
	}
	assert.Contains(t, read("docs/install.md"), "docker pull ghcr.io/quotasvc/quotasvc:")
}

// The page about releases names the oldest versions that the files of the packages name.
func TestInstall_Supported_AsThePackagesSay(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		return string(testenv.Must(t).Get(os.ReadFile(filepath.Join("../..", name))))
	}
	page := read("docs/releasing.md")
	for _, oldest := range []struct{ file, pattern, row string }{
		{"go.mod", `(?m)^go (\d+\.\d+)`, "| Go, to build the service | %s |"},
		{"client/go.mod", `(?m)^go (\d+\.\d+)`, "| Go, of programs with the client | %s and newer |"},
		{"client/quotaecho/go.mod", `(?m)^go (\d+\.\d+)`, "| Go, of programs with the client | %s and newer |"},
		{"sdk/typescript/package.json", `"node": ">=(\d+)"`, "| Node | %s and newer |"},
		{"sdk/python/pyproject.toml", `requires-python = ">=([0-9.]+)"`, "| Python | %s and newer |"},
	} {
		version := regexp.MustCompile(oldest.pattern).FindStringSubmatch(read(oldest.file))
		require.NotNil(t, version, oldest.file)
		assert.Contains(t, page, fmt.Sprintf(oldest.row, version[1]), oldest.file)
	}
}
