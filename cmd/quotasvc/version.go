package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// version and commit are set by the linker (-X main.version=... -X main.commit=...) in `make build` and in the
// Dockerfile.
var version, commit = "", ""

// versionCmd is the command that prints the version.
type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(_ *slog.Logger) error {
	_, err := fmt.Fprintln(os.Stdout, versionLine())
	return err
}

// versionLine returns the line that versionCmd prints.
func versionLine() string {
	b := readBuild()
	return fmt.Sprintf("quotasvc %s %s %s/%s", b, b.goVersion, runtime.GOOS, runtime.GOARCH)
}

// build says from which source the program was built. An unknown field is empty.
type build struct {
	version   string // the release, or git describe's name of the commit
	commit    string // the full hash, followed by "-modified" if files were changed
	goVersion string
}

// readBuild returns the values that the linker has set. For a value that is not set, it returns the value that the Go
// command has stored in the program.
func readBuild() build {
	b := build{version: version, commit: commit, goVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	return b.with(info)
}

// with returns b. It takes the values that b lacks from info, which the Go command has stored in the program.
func (b build) with(info *debug.BuildInfo) build {
	if b.version == "" && info.Main.Version != "(devel)" { // the program was installed by go install module@version
		b.version = info.Main.Version
	}
	if b.commit != "" {
		return b
	}
	modified := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-modified"
		}
	}
	if b.commit != "" {
		b.commit += modified
	}
	return b
}

// String returns the version and a short form of the commit for people.
func (b build) String() string {
	const short = 12
	hash, modified, _ := strings.Cut(b.commit, "-")
	if modified != "" {
		modified = "-" + modified
	}
	switch hash = hash[:min(short, len(hash))] + modified; {
	case b.version == "" && hash == "":
		return "unknown"
	case b.version == "":
		return "commit " + hash
	case hash == "":
		return b.version
	default:
		return b.version + " commit " + hash
	}
}

// versionText returns the version and the commit as text for the log.
func versionText() string { return readBuild().String() }

// registerBuild registers a metric whose labels have the version.
func registerBuild(registry *prometheus.Registry) {
	b := readBuild()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quotasvc_build_info", Help: "1. The labels say what the program was built from.",
		ConstLabels: prometheus.Labels{"version": b.version, "commit": b.commit, "go_version": b.goVersion},
	}, func() float64 { return 1 }))
}
