package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

const (
	// envRelease is the environment variable that makes the tests build a whole release, for all platforms and with
	// SBOMs. `make test-release` sets it. Otherwise they build the archive for this machine, and the packages that
	// envScenes needs.
	envRelease = "QUOTASVC_TEST_RELEASE"

	// releaseNumber is the version of the release that the tests build. No file of the repository names it.
	releaseNumber = "1.99.0"
)

// release is a clone of this repository, and the release that `make release` has built from it.
type release struct {
	clone string
	dist  string
	// goproxy is the address of a Go module proxy in a folder. It has the modules of the tags that `make release-tags`
	// has set.
	goproxy string
}

// copied copies this repository for the first test that needs it, to a directory beside the test binary, which go test
// always removes. The copy is a git repository with one commit, in which the files name the version of the release.
var copied = sync.OnceValues(func() (*release, error) {
	tests, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := releaseIn(filepath.Join(filepath.Dir(tests), "release"))
	if err := testenv.CopyClone("../..", r.clone); err != nil {
		return nil, err
	}
	changelog := filepath.Join(r.clone, "CHANGELOG.md")
	text, err := os.ReadFile(changelog)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(text), "Unreleased\n") {
		text = append([]byte("# Changelog\n\n## Unreleased\n\n- A line.\n\n"), text...)
		if err := os.WriteFile(changelog, text, 0o644); err != nil { //nolint:gosec // as a clone has it
			return nil, err
		}
	}
	const version = "make -s release-version VERSION=v" + releaseNumber
	return r, r.run(nil, "git init -q", version, "git add -A", "git commit -qm All")
})

// released builds the release for the first test that needs it.
var released = sync.OnceValues(func() (*release, error) {
	r, err := copied()
	if err != nil {
		return nil, err
	}
	if err := r.make(); err != nil {
		return nil, err
	}
	return r, r.publishModules()
})

func releaseIn(dir string) *release {
	return &release{clone: filepath.Join(dir, "clone"), dist: filepath.Join(dir, "clone", "dist")}
}

// theRelease returns the release.
func theRelease(t *testing.T) *release {
	t.Helper()
	return testenv.Must(t).Get(released())
}

// anotherClone returns another clone of the copy, in which nothing is built and no tag is set.
func anotherClone(t *testing.T) *release {
	t.Helper()
	first, r := testenv.Must(t).Get(copied()), releaseIn(t.TempDir())
	require.NoError(t, first.run(nil, "git clone -q --no-tags . "+r.clone))
	return r
}

// run runs commands in the clone. See output.
func (r *release) run(env []string, commands ...string) error {
	for _, command := range commands {
		if out, err := r.output(env, command); err != nil {
			return fmt.Errorf("%s: %w\n%s", command, err, out)
		}
	}
	return nil
}

// output runs a command of the shell in the clone and returns what it has printed. Neither settings of the test's
// environment nor those of make reach it, and no Docker engine answers.
func (r *release) output(env []string, command string) (string, error) {
	// All platforms may be compiled for the first time.
	ctx, cancel := context.WithTimeout(context.Background(), 12*testenv.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // the commands of the tests
	cmd.Dir = r.clone
	of := strings.Fields("MAKEFLAGS MFLAGS MAKELEVEL ARGS VERSION COMMIT PARTS PLATFORMS IMAGE GOFLAGS")
	for _, pair := range withoutSettings(os.Environ()) {
		if name, _, _ := strings.Cut(pair, "="); !slices.Contains(of, name) {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		cmd.Env = append(cmd.Env, "GIT_"+who+"_NAME=quotasvc", "GIT_"+who+"_EMAIL=quotasvc@example.com",
			"GIT_"+who+"_DATE=2026-12-01T00:00:00Z")
	}
	cmd.Env = append(cmd.Env, "DOCKER_HOST=unix:///nonexistent.sock", "GIT_CONFIG_GLOBAL=/dev/null")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// make builds the release: all of it for `make test-release`, else what the tests need on this machine.
func (r *release) make() error {
	less := ""
	if os.Getenv(envRelease) == "" {
		less = " PLATFORMS=" + runtime.GOOS + "/" + runtime.GOARCH + " PARTS='archives"
		for _, scene := range []struct{ name, part string }{{"node", " npm"}, {"python", " python"}} {
			if hasScene(scene.name) {
				less += scene.part
			}
		}
		less += "'"
	}
	return r.run(nil, "make -s release VERSION=v"+releaseNumber+less)
}

// publishModules sets the tags and lets the go command fetch the modules from them, as a module proxy does. The folder
// of what it has fetched is a module proxy.
func (r *release) publishModules() error {
	cache := filepath.Join(filepath.Dir(r.clone), "modules")
	env := []string{
		"GOPROXY=direct", "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOWORK=off", "GOTOOLCHAIN=local",
		"GOMODCACHE=" + cache, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + r.clone + ".insteadOf",
		"GIT_CONFIG_VALUE_0=https://github.com/quotasvc/quotasvc",
	}
	const client = "github.com/quotasvc/quotasvc/client@v" + releaseNumber
	const echo = "github.com/quotasvc/quotasvc/client/quotaecho@v" + releaseNumber
	r.goproxy = "file://" + filepath.Join(cache, "cache/download")
	return r.run(env, "make -s release-tags VERSION=v"+releaseNumber, "cd / && go mod download "+client+" "+echo)
}

// archive returns the path of the archive for this machine.
func (r *release) archive() string {
	return filepath.Join(r.dist, fmt.Sprintf("quotasvc_%s_%s_%s.tar.gz", releaseNumber, runtime.GOOS, runtime.GOARCH))
}

// unpack unpacks the archive for this machine into dir and returns the directory with the program.
func (r *release) unpack(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "tar", "xzf", r.archive(), "-C", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return filepath.Join(dir, strings.TrimSuffix(filepath.Base(r.archive()), ".tar.gz"))
}

// checksums returns the SHA-256 of each file of the release.
func (r *release) checksums(t *testing.T) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for line := range strings.Lines(string(testenv.Must(t).Get(os.ReadFile(filepath.Join(r.dist, "checksums.txt"))))) {
		fields := strings.Fields(line)
		sums[fields[1]] = fields[0]
	}
	return sums
}

func TestRelease_Archive_HasProgramLicenceExamples(t *testing.T) {
	t.Parallel()
	r := theRelease(t)
	dir := r.unpack(t, t.TempDir())
	for _, name := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", "docker-compose.yml", "cmd/quotasvc/demo.yaml",
		"deploy/systemd/quotasvc.service", "deploy/kubernetes/example/kustomization.yaml",
		"deploy/prometheus/alerts.yml", "deploy/postgres/roles.sql",
	} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	commit := testenv.Must(t).Get(r.output(nil, "git rev-parse HEAD"))
	out := testenv.Must(t).Get(exec.CommandContext(t.Context(), filepath.Join(dir, "quotasvc"), "version").Output())
	assert.Contains(t, string(out), fmt.Sprintf("quotasvc v%s commit %s go1.", releaseNumber, commit[:12]))

	file := testenv.Must(t).Get(os.Open(r.archive()))
	defer func() { _ = file.Close() }()
	files, modified := tar.NewReader(testenv.Must(t).Get(gzip.NewReader(file))), map[string]bool{}
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if header.Typeflag == tar.TypeXGlobalHeader {
			assert.Equal(t, commit, header.PAXRecords["comment"])
			continue
		}
		modified[header.ModTime.UTC().Format("2006-01-02T15:04:05")] = true
		assert.False(t, header.Uid != 0 || strings.HasSuffix(header.Name, ".go"), "%+v", header)
	}
	assert.Equal(t, map[string]bool{"2026-12-01T00:00:00": true}, modified, "times of files, want that of the commit")
}

// Every file has a checksum, and the same commit in another directory gives the same checksums.
func TestRelease_SameCommit_SameBytes(t *testing.T) {
	t.Parallel()
	r := theRelease(t)
	const check = "cd dist && { sha256sum --check checksums.txt || shasum -a 256 --check checksums.txt; }"
	require.NoError(t, r.run(nil, check))
	again := anotherClone(t)
	require.NoError(t, again.make())
	sums := r.checksums(t)
	assert.Equal(t, sums, again.checksums(t))
	for _, entry := range testenv.Must(t).Get(os.ReadDir(r.dist)) {
		assert.True(t, sums[entry.Name()] != "" || entry.Name() == "checksums.txt", "%s has no checksum", entry.Name())
	}
}

// decodedBOM is the part of an SBOM that the test looks at.
type decodedBOM struct {
	BOMFormat string
	Metadata  struct {
		Component struct{ Name, Version string }
	}
}

// `make test-release` builds everything: what the binding list of files says is there, for each platform.
func TestRelease_Whole_HasEveryFile(t *testing.T) {
	t.Parallel()
	if os.Getenv(envRelease) == "" {
		t.Skip("make test-release runs it: it builds for all platforms")
	}
	r := theRelease(t)
	const python, bom = "quotasvc-" + releaseNumber, "_" + releaseNumber + ".cdx.json"
	want := []string{
		"checksums.txt", "release-notes.md", "quotasvc-" + releaseNumber + ".tgz", python + ".tar.gz",
		python + "-py3-none-any.whl", "quotasvc-npm" + bom, "quotasvc-python" + bom, "quotasvc-go-client" + bom,
		"quotasvc-go-client-quotaecho" + bom,
	}
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		name := fmt.Sprintf("quotasvc_%s_%s", releaseNumber, platform)
		want = append(want, name+".tar.gz", name+".cdx.json")
	}
	var got []string
	for _, entry := range testenv.Must(t).Get(os.ReadDir(r.dist)) {
		got = append(got, entry.Name())
		if strings.HasSuffix(entry.Name(), ".cdx.json") {
			text := testenv.Must(t).Get(os.ReadFile(filepath.Join(r.dist, entry.Name())))
			list := decodedBOM{}
			require.NoError(t, json.Unmarshal(text, &list))
			assert.Equal(t, "CycloneDX", list.BOMFormat, entry.Name())
			assert.Contains(t, list.Metadata.Component.Name, "quotasvc", entry.Name())
			assert.Equal(t, releaseNumber, strings.TrimPrefix(list.Metadata.Component.Version, "v"), entry.Name())
		}
	}
	assert.ElementsMatch(t, want, got)
}

// What is wrong is said in one line, before anything is built.
func TestRelease_WrongInput_RefusedInOneLine(t *testing.T) {
	t.Parallel()
	r := anotherClone(t)
	refused := func(want string, env []string, args string) {
		t.Helper()
		out, err := r.output(env, "make -s "+args)
		require.Error(t, err, out)
		var said []string
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "make: ***") {
				said = append(said, strings.TrimSpace(line))
			}
		}
		assert.True(t, len(said) == 1 && strings.Contains(said[0], want), "%v, want one line with %q", said, want)
		assert.NoDirExists(t, r.dist)
	}
	const release = "release VERSION=v" + releaseNumber
	refused("the version is missing: make release VERSION=v1.2.3", nil, "release")
	refused("the version is missing: make release-tags VERSION=v1.2.3", nil, "release-tags")
	refused("the version is missing: make release-version VERSION=v1.2.3", nil, "release-version")
	for _, bad := range []string{"1.99.0", "v1.99", "v01.99.0", "v1.99.0-beta", "v1.99.0-rc.0", "'v1.99.0 v1'"} {
		refused("is no version", nil, "release VERSION="+bad)
	}
	refused("go.mod, client/go.mod", nil, "release VERSION=v2.0.0")
	refused("names another version than v1.98.0", nil, "release VERSION=v1.98.0")
	nowhere := []string{"HOME=/dev/null", "GOCACHE=/dev/null/go-build"}
	refused("Go's build cache, /dev/null/go-build, cannot be written: set GOCACHE", nowhere, release+" PARTS=archives")
	refused("no Python has hatchling", []string{"PYTHON=false"}, release+" PARTS=python")
	refused("PARTS has no archive: archives sbom npm python image", nil, release+" PARTS='sbom archive'")
	refused(`no section "## Unreleased"`, nil, "release-version VERSION=v1.98.0")
	changed := testenv.Must(t).Get(r.output(nil, "git status --porcelain"))
	assert.Empty(t, changed, "a version that was refused is written")

	stray := filepath.Join(r.clone, "stray.txt")
	require.NoError(t, os.WriteFile(stray, nil, 0o600))
	refused("commit these files, or remove them: stray.txt", nil, release)
	refused("commit these files, or remove them: stray.txt", nil, "release-tags VERSION=v"+releaseNumber)
	require.NoError(t, os.Remove(stray))
	require.NoError(t, r.run(nil, "git tag client/v"+releaseNumber, "git commit --allow-empty -qm Another"))
	refused("the tag client/v1.99.0 exists already, for the commit ", nil, release)
	refused("the tag client/v1.99.0 exists already, for the commit ", nil, "release-tags VERSION=v"+releaseNumber)
	assert.Equal(t, "client/v1.99.0", testenv.Must(t).Get(r.output(nil, "git tag")))
	require.NoError(t, os.RemoveAll(filepath.Join(r.clone, ".git")))
	refused("needs a clone, and git", []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(r.clone)}, release)
}

// The tags are those of the service and of each module that other programs import. Tags that exist already stay.
func TestRelease_Tags_ServiceAndModules(t *testing.T) {
	t.Parallel()
	r := anotherClone(t)
	require.NoError(t, r.run(nil, "git tag v1.99.0"))
	for range 2 {
		require.NoError(t, r.run(nil, "make -s release-tags VERSION=v"+releaseNumber))
		tags := strings.Fields(testenv.Must(t).Get(r.output(nil, "git tag --points-at HEAD")))
		assert.ElementsMatch(t, []string{"v1.99.0", "client/v1.99.0", "client/quotaecho/v1.99.0"}, tags)
	}
}

// An upgrade starts from the newest release among the ancestors, whatever tags other commits have. Without tags it
// starts from the commit in the file.
func TestRelease_Previous_NewestTagElseFile(t *testing.T) {
	t.Parallel()
	r := anotherClone(t)
	git := func(args string) string { return testenv.Must(t).Get(r.output(nil, "git "+args)) }
	previous := func(args ...string) string {
		out, _ := r.output(nil, strings.Join(append([]string{"scripts/build-previous.sh --commit"}, args...), " "))
		return out
	}
	first := git("rev-parse HEAD")
	assert.Contains(t, previous(), "is not in this clone: run git fetch --unshallow --tags")
	file := filepath.Join(r.clone, "lab/e2e/testdata/upgrade/previous")
	require.NoError(t, os.WriteFile(file, []byte(first+"\n"), 0o600))
	git("commit -qam 'The file names a commit'")
	assert.Equal(t, first, previous(), "without tags, the commit of the file")
	git("tag v1.99.0")
	released := git("rev-parse HEAD")
	assert.Equal(t, first, previous(), "a release does not upgrade from itself")
	assert.Equal(t, released, previous("--released"))
	for _, tag := range []string{"v1.100.0-rc.1", "client/v1.101.0"} {
		git("commit --allow-empty -qm " + tag)
		git("tag " + tag)
	}
	git("commit --allow-empty -qm Work")
	assert.Equal(t, released, previous(), "neither release candidates nor the client's tags count")
}
