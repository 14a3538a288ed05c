package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

const (
	manifestName = "manifest.json"
	// format is the version of the formats of the manifest and the files.
	format = 1
	// partial is the suffix of a file that is being written.
	partial = ".partial"
)

// Manifest describes an archive. It is written again after each file. The last version has Complete set.
type Manifest struct {
	Format   int       `json:"format"`
	Complete bool      `json:"complete"`
	Database string    `json:"database"` // id of the database; a restored copy has the same id
	Schema   int64     `json:"schema"`   // version of the schema
	Before   string    `json:"before"`   // the oldest month that was kept in the database
	Oldest   time.Time `json:"oldest"`   // the first instant of that month
	Months   []string  `json:"months"`   // months of the entries in this archive
	MadeAt   time.Time `json:"made_at"`
	Files    []File    `json:"files"`
}

// File is one file of an archive.
type File struct {
	Name   string `json:"name"`
	Table  string `json:"table"`
	Month  string `json:"month,omitempty"` // month of the entries
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// file returns a file's entry in the manifest, nil if there is none.
func (m *Manifest) file(name string) *File {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return &m.Files[i]
		}
	}
	return nil
}

// Rows returns the number of rows in all files.
func (m *Manifest) Rows() int64 {
	total := int64(0)
	for i := range m.Files {
		total += m.Files[i].Rows
	}
	return total
}

// Bytes returns the size of all files.
func (m *Manifest) Bytes() int64 {
	total := int64(0)
	for i := range m.Files {
		total += m.Files[i].Bytes
	}
	return total
}

// directory is the path of an archive.
type directory string

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

// ReadManifest returns the manifest of the archive in dir, and the manifest's digest in hexadecimal.
func ReadManifest(dir string) (*Manifest, string, error) {
	text, err := os.ReadFile(directory(dir).path(manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%s holds no archive: it has no %s", dir, manifestName)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the archive's manifest: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, "", fmt.Errorf("%s is not the manifest of an archive: %w", directory(dir).path(manifestName), err)
	}
	if m.Format != format {
		return nil, "", fmt.Errorf("the archive in %s has form %d; this version of quotasvc knows form %d", dir, m.Format, format)
	}
	sum := sha256.Sum256(text)
	return &m, hex.EncodeToString(sum[:]), nil
}

// open prepares the directory for the archive that want describes, and returns the manifest of an earlier run, or want
// if there is none.
func (d directory) open(want *Manifest) (*Manifest, error) {
	names, err := d.names()
	if err != nil {
		return nil, err
	}
	if names == nil {
		if err := os.MkdirAll(string(d), 0o750); err != nil {
			return nil, fmt.Errorf("make the archive's directory: %w", err)
		}
	}
	have, err := d.begun(names, want)
	if err != nil || have != nil {
		return have, err
	}
	if err := d.save(want); err != nil {
		return nil, err
	}
	return want, nil
}

// names lists the directory. It returns nil if the directory does not exist.
func (d directory) names() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the archive's directory: %w", err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// begun returns the manifest in the directory. It returns nil if the directory is empty. names lists the files there.
// It refuses a directory that contains anything except the archive that want describes.
func (d directory) begun(names []string, want *Manifest) (*Manifest, error) {
	if len(names) == 0 || len(names) == 1 && names[0] == manifestName+partial {
		return nil, nil
	}
	have, _, err := ReadManifest(string(d))
	switch {
	case err != nil && !exists(d.path(manifestName)):
		return nil, refuse("--to", "%s is not empty, and what is in it is no archive (it has no %s): choose an empty or a new directory", d, manifestName)
	case err != nil:
		return nil, refuse("--to", "%v", err)
	case have.Database != want.Database:
		return nil, refuse("--to", "%s holds an archive of another database (%s; this one is %s)", d, have.Database, want.Database)
	case have.Before != want.Before:
		return nil, refuse("--to", "%s holds the archive of what was before %s: choose another directory for what was before %s", d, have.Before, want.Before)
	}
	return have, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// save writes the manifest and makes sure that it is on disk.
func (d directory) save(m *Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := d.create(manifestName)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	_, _, err = f.end(err)
	return err
}

// newFile is a file that is being written. It is renamed to its final name when it is complete and on disk.
type newFile struct {
	dir    directory
	name   string
	file   *os.File
	buffer *bufio.Writer
	sum    hash.Hash
	bytes  int64
}

func (d directory) create(name string) (*newFile, error) {
	file, err := os.OpenFile(d.path(name+partial), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("write the archive: %w", err)
	}
	return &newFile{dir: d, name: name, file: file, buffer: bufio.NewWriterSize(file, 1<<20), sum: sha256.New()}, nil
}

// Write implements io.Writer.
func (f *newFile) Write(p []byte) (int, error) {
	n, err := f.buffer.Write(p)
	_, _ = f.sum.Write(p[:n]) // never fails
	f.bytes += int64(n)
	return n, err
}

// end closes the file. If err is nil the file is complete, and gets its final name.
func (f *newFile) end(err error) (bytes int64, digest string, _ error) {
	if err == nil {
		err = f.buffer.Flush()
	}
	if err == nil {
		err = f.file.Sync()
	}
	if err = errors.Join(err, f.file.Close()); err == nil {
		err = os.Rename(f.dir.path(f.name+partial), f.dir.path(f.name))
	}
	if err == nil {
		err = syncDirectory(string(f.dir))
	}
	if err != nil {
		return 0, "", fmt.Errorf("write %s: %w", f.dir.path(f.name), err)
	}
	return f.bytes, hex.EncodeToString(f.sum.Sum(nil)), nil
}

// syncDirectory makes sure that new file names are on disk.
func syncDirectory(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// check compares a file with the manifest.
func (d directory) check(f *File) error {
	file, err := os.Open(d.path(f.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing", f.Name)
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // the file was only read
	sum := sha256.New()
	n, err := io.Copy(sum, file)
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", f.Name, err)
	case n != f.Bytes:
		return fmt.Errorf("%s has %d bytes, the manifest says %d", f.Name, n, f.Bytes)
	case hex.EncodeToString(sum.Sum(nil)) != f.SHA256:
		return fmt.Errorf("%s was altered: its SHA-256 is not that of the manifest", f.Name)
	}
	return nil
}

// Refusal is the reason why a command's request is not allowed. Nothing was done.
type Refusal struct{ Option, Reason string }

func (r *Refusal) Error() string { return r.Option + ": " + r.Reason }

func refuse(option, format string, args ...any) *Refusal {
	return &Refusal{Option: option, Reason: fmt.Sprintf(format, args...)}
}

// entriesFile returns the name of the file with a month's entries.
func entriesFile(m journal.Month) string { return "entries-" + m.String() + ".parquet" }
