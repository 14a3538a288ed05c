package containers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// These are the names of the stand-ins. The library of internal/lab/testenv puts the prefix before the names of its
// images if it finds it in hubPrefix.
const (
	prefix        = "quotasvc-test"
	postgresImage = prefix + "/postgres:17"
	redisImage    = prefix + "/redis:7"
	goImage       = prefix + "/golang:1"
	staticImage   = prefix + "/static:1"
	serviceImage  = prefix + "/quotasvc:dev"
	hubPrefix     = "TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX=" + prefix
)

const (
	noUser    = 65532 // of the base image without a shell
	serverUID = 999   // of PostgreSQL and Redis
)

// standIns makes the stand-ins once for all tests.
var standIns sync.Once

func needStandIns(t *testing.T) {
	t.Helper()
	needEngine(t)
	if pulls() {
		return
	}
	standIns.Do(func() {
		makeStatic(t)
		makeGo(t)
		makePostgres(t)
		makeRedis(t)
	})
}

func makeStatic(t *testing.T) {
	t.Helper()
	makeImage(t, staticImage, []string{"USER 65532"}, func(r *rootfs) {
		r.text("/etc/passwd", "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n", 0o644)
		r.dir("/home/nonroot", noUser, 0o700)
		r.dir("/tmp", 0, 0o1777)
		if certificates := "/etc/ssl/certs/ca-certificates.crt"; fileExists(certificates) {
			r.file(certificates, certificates)
		}
	})
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// makeGo makes an image with the Go of this machine and all modules of the service, so that a build in it uses no
// network.
func makeGo(t *testing.T) {
	t.Helper()
	out, err := try(t, root, []string{"GOWORK=off"}, "go", "mod", "download")
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(t.Context(), "go", "env", "-json", "GOROOT", "GOMODCACHE", "GOCACHE")
	cmd.Dir = root
	var of struct{ GOROOT, GOMODCACHE, GOCACHE string }
	require.NoError(t, json.Unmarshal(testenv.Must(t).Get(cmd.Output()), &of))
	sums := testenv.Must(t).Get(os.ReadFile(filepath.Join(root, "go.sum")))
	changes := []string{
		"ENV PATH=/usr/local/go/bin:/usr/bin:/bin", "ENV GOPATH=/go", "ENV GOCACHE=/compiled",
		"ENV GOTOOLCHAIN=local", "ENV GOPROXY=file:///modules", "WORKDIR /go",
	}
	compiled := compiledPackages(t, of.GOCACHE)
	makeImage(t, goImage, changes, func(r *rootfs) {
		r.dir("/tmp", 0, 0o1777)
		r.program("/bin/sh")
		r.tree(of.GOROOT, "/usr/local/go", regexp.MustCompile(`^/(api|doc|misc|test)$|/testdata$|_test\.go$`))
		for _, file := range compiled {
			r.file(filepath.Join(of.GOCACHE, file), "/compiled/"+file)
		}
		for line := range strings.Lines(string(sums)) {
			words := strings.Fields(line)
			version, onlyMod := strings.CutSuffix(words[1], "/go.mod")
			for _, kind := range []string{".info", ".mod", ".zip"} {
				file := "/" + escape(words[0]) + "/@v/" + escape(version) + kind
				from := filepath.Join(of.GOMODCACHE, "cache", "download", file)
				if (kind != ".zip" || !onlyMod) && fileExists(from) {
					r.file(from, "/modules"+file)
				}
			}
		}
	})
}

// actionID is a line of the go command that names an entry of its cache.
var actionID = regexp.MustCompile(`(?m)^HASH\[.*\]: ([0-9a-f]{64})$`)

// compiledPackages compiles the service, and returns the files of the cache that this used, relative to the cache.
// With them the build in the image only links, as a second build of a newcomer does.
func compiledPackages(t *testing.T, cache string) []string {
	t.Helper()
	env := []string{"GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GODEBUG=gocachehash=1"}
	out, err := try(t, root, env, "go", "build", "-trimpath", "-buildvcs=false", "-o", os.DevNull, "./cmd/quotasvc")
	require.NoError(t, err, "%s", lastLines(out))
	var files []string
	for _, m := range actionID.FindAllStringSubmatch(out, -1) {
		action := m[1][:2] + "/" + m[1] + "-a"
		text, err := os.ReadFile(filepath.Join(cache, action))
		if words := strings.Fields(string(text)); err == nil && len(words) >= 3 {
			files = append(files, action, words[2][:2]+"/"+words[2]+"-d")
		}
	}
	require.Greater(t, len(files), 600, "the go command names no entries of its cache any more")
	return files
}

// lastLines returns the end of an output.
func lastLines(out string) string { return out[max(0, len(out)-2000):] }

// escape returns a module's path or version as the cache of modules names it.
func escape(name string) string {
	var out strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			out.WriteByte('!')
			c = unicode.ToLower(c)
		}
		out.WriteRune(c)
	}
	return out.String()
}

// makePostgres makes an image from Debian's package of PostgreSQL.
func makePostgres(t *testing.T) {
	t.Helper()
	found := testenv.Must(t).Get(localstack.SystemSearch().Postgres(t.Context(), 0))
	top := filepath.Dir(found.Dir) // such as /usr/lib/postgresql/15
	share := filepath.Join("/usr/share/postgresql", filepath.Base(top))
	require.DirExists(t, share, "the stand-in is made from Debian's package of PostgreSQL")
	entry := testenv.Must(t).Get(os.ReadFile("testdata/postgres.sh"))
	changes := []string{
		"ENV PATH=" + found.Dir + ":/usr/bin:/bin", "ENV PGDATA=/var/lib/postgresql/data",
		"VOLUME /var/lib/postgresql/data", "EXPOSE 5432", `ENTRYPOINT ["/postgres.sh"]`, `CMD ["postgres"]`,
	}
	makeImage(t, postgresImage, changes, func(r *rootfs) {
		r.text("/etc/passwd", "root:x:0:0::/:/bin/sh\npostgres:x:999:999::/:/bin/sh\n", 0o644)
		r.text("/etc/group", "root:x:0:\npostgres:x:999:\n", 0o644)
		r.text("/postgres.sh", string(entry), 0o755)
		r.dir("/tmp", 0, 0o1777)
		r.dir("/var/run/postgresql", serverUID, 0o755)
		r.program("/bin/sh")
		r.programs("mkdir", "chown", "chmod", "rm", "setpriv")
		for _, name := range []string{"postgres", "initdb", "pg_ctl", "psql", "pg_isready"} {
			r.program(filepath.Join(found.Dir, name))
		}
		for _, name := range []string{"plpgsql.so", "dict_snowball.so", "libpqwalreceiver.so"} {
			r.program(filepath.Join(top, "lib", name))
		}
		r.tree(filepath.Join(top, "lib"), filepath.Join(top, "lib"), regexp.MustCompile(`llvm|^/bitcode$|^/pgxs$`))
		r.tree(share, share, regexp.MustCompile(`^/man$`))
		r.tree("/usr/share/zoneinfo", "/usr/share/zoneinfo", regexp.MustCompile(`^/(posix|right)$`))
	})
}

// makeRedis makes an image from the Redis of this machine.
func makeRedis(t *testing.T) {
	t.Helper()
	server := testenv.Must(t).Get(localstack.SystemSearch().Redis())
	changes := []string{
		"ENV PATH=" + filepath.Dir(server) + ":/usr/bin:/bin", "USER 999", "WORKDIR /data", "VOLUME /data",
		"EXPOSE 6379", `ENTRYPOINT ["/redis.sh"]`, `CMD ["redis-server"]`,
	}
	makeImage(t, redisImage, changes, func(r *rootfs) {
		r.text("/etc/passwd", "root:x:0:0::/:/bin/sh\nredis:x:999:999::/data:/bin/sh\n", 0o644)
		// The image of Redis has no protected mode, because callers come from other containers.
		r.text("/redis.sh", "#!/bin/sh\nexec \"$@\" --protected-mode no\n", 0o755)
		r.dir("/data", serverUID, 0o755)
		r.dir("/tmp", 0, 0o1777)
		r.program("/bin/sh")
		r.programs("grep", "redis-cli")
		r.program(server)
	})
}
