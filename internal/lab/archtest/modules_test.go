package archtest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clientModules maps the folders of modules to the paths of the modules. Other programs import these modules.
var clientModules = map[string]string{
	"client":           module + "/client",
	"client/quotaecho": module + "/client/quotaecho",
}

// inModule runs the go command in a module's folder, without the other modules of this repository.
func inModule(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "go %s: %v\n%s", strings.Join(args, " "), err, out)
	return string(out)
}

// laboratoryAlone lists the modules that only lab/ needs: for charts, histograms and a browser.
var laboratoryAlone = []string{
	"github.com/HdrHistogram/hdrhistogram-go", "github.com/chromedp/cdproto", "github.com/chromedp/chromedp",
	"gonum.org/v1/plot", "golang.org/x/image", "codeberg.org/go-latex/latex", "codeberg.org/go-fonts/liberation",
	"codeberg.org/go-pdf/fpdf", "git.sr.ht/~sbinet/gg", "github.com/golang/freetype", "github.com/ajstarks/svgo",
}

// The laboratory (lab/) is a separate module. The service needs none of the libraries that only the laboratory uses.
func TestProduct_Modules_NoneOfTheLaboratory(t *testing.T) {
	t.Parallel()
	modulesOf := func(dir string) map[string]bool {
		found := map[string]bool{}
		for line := range strings.Lines(inModule(t, dir, "list", "-m", "all")) {
			found[strings.Fields(line)[0]] = true
		}
		return found
	}
	product, laboratory := modulesOf("../../.."), modulesOf("../../../lab")
	for _, path := range laboratoryAlone {
		assert.False(t, product[path], "go.mod needs %s", path)
		assert.True(t, laboratory[path], "lab/go.mod does not need %s: take it off this list", path)
	}
	assert.False(t, product[module+"/lab"], "the service needs its laboratory")
	inModule(t, "../../../lab", "list", "-deps", "-test", "./...") // lab's go.mod lists all modules that lab needs
}

// The client needs only the standard library. The middleware for echo compiles with the oldest version of echo that its
// go.mod permits.
func TestClient_Modules_CompileAlone(t *testing.T) {
	t.Parallel()
	for dir := range clientModules {
		inModule(t, filepath.Join("../../..", dir), "vet", "./...")
	}
	all := strings.Fields(inModule(t, "../../../client", "list", "-m", "all"))
	assert.Equal(t, []string{clientModules["client"]}, all, "the client's modules")
}

// A program that imports the client gets no module of the service. If the program and the service use the same
// module, the program keeps its own version of that module.
func TestClient_User_KeepsItsVersions(t *testing.T) {
	t.Parallel()
	own := map[string]string{
		"github.com/jackc/pgx/v5":     "v5.7.1",
		"github.com/labstack/echo/v4": "v4.13.3",
		"google.golang.org/grpc":      "v1.70.0",
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	text := "module example.com/user\n\ngo 1.25.0\n\n"
	for path, version := range own {
		text += fmt.Sprintf("require %s %s\n", path, version)
	}
	for dir, path := range clientModules {
		text += fmt.Sprintf("require %s v1.0.0\nreplace %s => %s\n", path, path, filepath.Join(root, dir))
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644))
	got := map[string]string{}
	for line := range strings.Lines(inModule(t, dir, "list", "-mod=mod", "-m", "all")) {
		path, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		version, _, _ := strings.Cut(rest, " ")
		if _, mine := own[path]; mine {
			got[path] = version
		}
		assert.True(t, !strings.HasPrefix(path, module) ||
			slices.Contains(slices.Collect(maps.Values(clientModules)), path),
			"the service's module %s is among them", path)
	}
	assert.True(t, maps.Equal(got, own), "the versions are %v, were %v", got, own)
}

// If go.work exists, the go command takes the version of Go from go.work. The image is built without go.work, with
// the version in go.mod. All these files must name the same version.
func TestGo_WorkAndModules_SameVersion(t *testing.T) {
	t.Parallel()
	versions := func(file string) string {
		text, err := os.ReadFile("../../../" + file)
		require.NoError(t, err)
		return strings.Join(regexp.MustCompile(`(?m)^(go|toolchain) .*`).FindAllString(string(text), -1), ", ")
	}
	work := versions("go.work")
	assert.Contains(t, work, "toolchain ", "go.work")
	for _, file := range []string{"go.mod", "lab/go.mod"} {
		assert.Equal(t, work, versions(file), "%s and go.work", file)
	}
}
