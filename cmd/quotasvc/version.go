package main

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
)

// version is set by the linker (-X main.version=...) for releases.
var version = ""

// versionCmd prints the version.
type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(_ *slog.Logger) error {
	_, err := fmt.Fprintf(os.Stdout, "quotasvc %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionText returns the release or, without one, the commit that the program was built from.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "-modified"
		}
	}
	if revision == "" {
		return info.Main.Version
	}
	return "commit " + revision[:min(12, len(revision))] + modified
}
