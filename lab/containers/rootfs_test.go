package containers

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// rootfs writes the files of an image. A link of this machine becomes the file to which it leads.
type rootfs struct {
	t       *testing.T
	out     *tar.Writer
	written map[string]bool
}

// makeImage makes an image with the files that `fill` writes. Each change is a line of a Dockerfile.
func makeImage(t *testing.T, name string, changes []string, fill func(*rootfs)) {
	t.Helper()
	t.Logf("making %s", name)
	var args []string
	for _, change := range changes {
		args = append(args, "--change", change)
	}
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", append(append([]string{"import"}, args...), "-", name)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	in := testenv.Must(t).Get(cmd.StdinPipe())
	require.NoError(t, cmd.Start())
	r := &rootfs{t: t, out: tar.NewWriter(in), written: map[string]bool{}}
	fill(r)
	require.NoError(t, r.out.Close())
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait(), "docker import %s: %s", name, said.String())
}

func (r *rootfs) write(header *tar.Header, content io.Reader) {
	r.t.Helper()
	if r.written[header.Name] {
		return
	}
	r.written[header.Name] = true
	header.Name = strings.TrimPrefix(header.Name, "/")
	require.NoError(r.t, r.out.WriteHeader(header))
	_, err := io.Copy(r.out, content)
	require.NoError(r.t, err, "%s", header.Name)
}

// dir makes a directory that belongs to a user.
func (r *rootfs) dir(path string, user int, mode int64) {
	r.t.Helper()
	r.write(&tar.Header{Typeflag: tar.TypeDir, Name: path, Mode: mode, Uid: user, Gid: user}, strings.NewReader(""))
}

// text makes a file.
func (r *rootfs) text(path, text string, mode int64) {
	r.t.Helper()
	r.write(&tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: mode, Size: int64(len(text))}, strings.NewReader(text))
}

// file copies a file of this machine to the path `to`.
func (r *rootfs) file(from, to string) {
	r.t.Helper()
	f := testenv.Must(r.t).Get(os.Open(from))
	defer f.Close()
	info := testenv.Must(r.t).Get(f.Stat())
	mode := int64(info.Mode().Perm())
	r.write(&tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: mode, Size: info.Size()}, f)
}

// library is a line of ldd: a library with its path, or the loader.
var library = regexp.MustCompile(`(?m)(?:=> |^\s*)(/\S+) \(0x`)

// program copies a program or a library of this machine, with the libraries that it needs.
func (r *rootfs) program(path string) {
	r.t.Helper()
	r.file(path, path)
	needs, _ := exec.CommandContext(r.t.Context(), "ldd", path).Output() // it fails for a program without libraries
	for _, m := range library.FindAllSubmatch(needs, -1) {
		r.file(string(m[1]), string(m[1]))
	}
}

// programs copies programs that are in PATH.
func (r *rootfs) programs(names ...string) {
	r.t.Helper()
	for _, name := range names {
		r.program(testenv.Must(r.t).Get(exec.LookPath(name)))
	}
}

// tree copies the files of a directory to the path `to`, but for those that `without` matches.
func (r *rootfs) tree(from, to string, without *regexp.Regexp) {
	r.t.Helper()
	err := filepath.WalkDir(from, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(path, from)
		info, err := os.Stat(path)
		switch {
		case without.MatchString(rel) && info.IsDir():
			return fs.SkipDir
		case err == nil && info.Mode().IsRegular() && !without.MatchString(rel):
			r.file(path, to+rel)
		}
		return err
	})
	require.NoError(r.t, err)
}
