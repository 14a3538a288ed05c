package main

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuild_HoweverBuilt_SaysVersionAndCommit(t *testing.T) {
	t.Parallel()
	const hash = "0123456789abcdef0123456789abcdef01234567"
	clone := &debug.BuildInfo{
		Main:     debug.Module{Version: "(devel)"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: hash}, {Key: "vcs.modified", Value: "true"}},
	}
	bare := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}
	installed := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}
	for want, got := range map[string]build{
		"v1.2.3 commit 0123456789ab":      build{version: "v1.2.3", commit: hash}.with(bare),
		"v1.2.3":                          build{}.with(installed),
		"commit 0123456789ab-modified":    build{}.with(clone),
		"v2 commit 0123456789ab-modified": build{version: "v2"}.with(clone),
		"v2-dirty commit fedcba987654-modified": build{
			version: "v2-dirty", commit: "fedcba9876543210-modified",
		}.with(clone),
		"unknown": build{}.with(bare),
	} {
		assert.True(t, got.String() == want, "%+v: got %q, want %q", got, got, want)
	}
}

// `make build` passes version and commit to the linker, so that the program has them even if the Go command does not
// read git. It sets GOFLAGS and CGO_ENABLED in the environment.
func TestVersion_Makefile_PassesVersionAndCommit(t *testing.T) {
	t.Parallel()
	const show = "flags:; @echo GOFLAGS=$$GOFLAGS CGO_ENABLED=$$CGO_ENABLED"
	ask := func(args ...string) (string, error) {
		args = append([]string{"-C", filepath.Join("..", ".."), "--eval", show}, args...)
		out, err := exec.CommandContext(t.Context(), "make", args...).Output()
		return string(out), err
	}
	command, err := ask("-n", "build", "VERSION=v9.9.9", "COMMIT=abc")
	require.NoError(t, err)
	environment, err := ask("flags")
	require.NoError(t, err)
	for _, part := range []string{"-trimpath", "-X main.version=v9.9.9", "-X main.commit=abc", "CGO_ENABLED=0"} {
		assert.Contains(t, command+environment, part,
			"make build runs %s with %s, without %s", command, environment, part)
	}
}
