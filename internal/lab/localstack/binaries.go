package localstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MinPostgresMajor is the oldest PostgreSQL that the schema and the writer support. All supported releases of Debian
// and Ubuntu have this version or a newer one.
const MinPostgresMajor = 14

// versionTimeout is the time limit of `postgres --version`. The command takes milliseconds, or longer from a cold
// disk.
const versionTimeout = 20 * time.Second

// PostgresBinaries describes one installed PostgreSQL.
type PostgresBinaries struct {
	Dir     string // contains postgres and initdb
	Major   int    // for example 17
	Version string // for example "17.2 (Debian 17.2-1.pgdg120+1)"
}

// Search lists directories with server programs. They may contain wildcards.
type Search struct {
	Path         []string // searched first, for all programs
	PostgresDirs []string // the newest version in them is used
	RedisDirs    []string // the first program found in them is used
}

// SystemSearch returns PATH and the directories of package managers: Debian and
// Ubuntu (with pgdg), Fedora and RHEL (with pgdg), Homebrew on both architectures,
// Alpine, and manual installations. PATH comes first, so that a user can choose.
func SystemSearch() Search {
	return Search{
		Path: filepath.SplitList(os.Getenv("PATH")),
		PostgresDirs: []string{
			"/usr/lib/postgresql/*/bin",
			"/usr/pgsql-*/bin",
			"/opt/homebrew/opt/postgresql@*/bin",
			"/usr/local/opt/postgresql@*/bin",
			"/opt/homebrew/opt/postgresql/bin",
			"/usr/local/opt/postgresql/bin",
			"/usr/libexec/postgresql*",
			"/usr/local/pgsql/bin",
			"/usr/bin",
		},
		RedisDirs: []string{"/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/usr/sbin"},
	}
}

// MissingError reports a server program that is not installed and how to install it.
type MissingError struct {
	Program string   // "PostgreSQL" or "Redis"
	Looked  []string // directories that were searched for the program
	Install string   // package-manager commands
	Cause   error    // set when a program was found but is not usable
}

func (e *MissingError) Error() string {
	why := ""
	if e.Cause != nil {
		why = " (" + e.Cause.Error() + ")"
	}
	return fmt.Sprintf("%s is not installed%s: install it with %s, or run everything with `docker compose up` instead; looked in PATH and %s",
		e.Program, why, e.Install, strings.Join(e.Looked, ", "))
}

func (e *MissingError) Unwrap() error { return e.Cause }

// Postgres finds an installed PostgreSQL. If major is 0, it returns the installation in PATH, or else the newest.
// Otherwise it returns only an installation of that major version, which existing data needs. It fails with
// *MissingError.
func (s Search) Postgres(ctx context.Context, major int) (PostgresBinaries, error) {
	missing := &MissingError{
		Program: "PostgreSQL",
		Looked:  s.PostgresDirs,
		Install: "`apt-get install postgresql`, `dnf install postgresql-server` or `brew install postgresql@17`",
	}
	if major != 0 {
		missing.Program = fmt.Sprintf("PostgreSQL %d", major)
	}
	inPath := s.examine(ctx, s.Path, major, missing)
	if len(inPath) > 0 {
		return inPath[0], nil
	}
	elsewhere := s.examine(ctx, expand(s.PostgresDirs), major, missing)
	if len(elsewhere) == 0 {
		return PostgresBinaries{}, missing
	}
	return slices.MaxFunc(elsewhere, func(a, b PostgresBinaries) int { return a.Major - b.Major }), nil
}

// examine returns the usable installations among dirs, in order. If an installation is not usable, examine stores the
// reason in missing.
func (s Search) examine(ctx context.Context, dirs []string, major int, missing *MissingError) []PostgresBinaries {
	var found []PostgresBinaries
	for _, dir := range dirs {
		postgres := filepath.Join(dir, "postgres")
		if !executable(postgres) || !executable(filepath.Join(dir, "initdb")) {
			continue
		}
		// initdb is beside the real program, not beside a link to it.
		resolved, err := filepath.EvalSymlinks(postgres)
		if err != nil {
			continue
		}
		b, err := identify(ctx, filepath.Dir(resolved))
		switch {
		case err != nil:
			missing.Cause = err
		case b.Major < MinPostgresMajor:
			missing.Cause = fmt.Errorf("%s holds PostgreSQL %d, at least %d is needed", dir, b.Major, MinPostgresMajor)
		case major != 0 && b.Major != major:
			missing.Cause = fmt.Errorf("%s holds PostgreSQL %d", dir, b.Major)
		default:
			found = append(found, b)
		}
	}
	return found
}

// Redis finds redis-server, or valkey-server if there is no redis-server. It fails with *MissingError.
func (s Search) Redis() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		for _, dir := range slices.Concat(s.Path, expand(s.RedisDirs)) {
			if p := filepath.Join(dir, name); executable(p) {
				return p, nil
			}
		}
	}
	return "", &MissingError{
		Program: "Redis",
		Looked:  s.RedisDirs,
		Install: "`apt-get install redis-server`, `dnf install redis` (or valkey) or `brew install redis`",
	}
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)\S*.*)`)

// identify reads the version of an installation.
func identify(ctx context.Context, dir string) (PostgresBinaries, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := runTool(ctx, command{path: filepath.Join(dir, "postgres"), args: []string{"--version"}, dir: "/"})
	if err != nil {
		return PostgresBinaries{}, err
	}
	m := versionPattern.FindStringSubmatch(strings.TrimSpace(out))
	if m == nil {
		return PostgresBinaries{}, fmt.Errorf("%s/postgres --version: cannot read %q", dir, out)
	}
	major, err := strconv.Atoi(m[2])
	if err != nil {
		return PostgresBinaries{}, fmt.Errorf("%s/postgres --version: %w", dir, err)
	}
	return PostgresBinaries{Dir: dir, Major: major, Version: m[1]}, nil
}

func expand(patterns []string) []string {
	var dirs []string
	for _, p := range patterns {
		// The patterns are constants, so Glob cannot return its only error, a malformed pattern.
		hits, _ := filepath.Glob(p)
		dirs = append(dirs, hits...)
	}
	return dirs
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// IsMissing reports whether err is about a server program that is not installed.
func IsMissing(err error) bool {
	var missing *MissingError
	return errors.As(err, &missing)
}

// Explain adds the command that installs the servers to an error about a missing server program. It returns other
// errors unchanged.
func Explain(err error) error {
	if IsMissing(err) {
		return fmt.Errorf("%w\n`make servers` installs PostgreSQL and Redis with the system's package manager", err)
	}
	return err
}
