package asset

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	stdpath "path"
	"strings"
	"sync"
)

// sandbox is the content security policy for an image. It applies when a user opens the image directly.
const sandbox = "default-src 'none'; sandbox"

// Set is a set of assets.
type Set struct {
	prefix string
	byName map[string]*asset // by the name with the hash, as in paths
	paths  map[string]string // by the file name: the path of the asset
}

type asset struct {
	mediaType string
	text      []byte
	zipped    func() []byte
}

// New returns a set with the files of the directory dir. Their paths begin with prefix.
func New(prefix string, files fs.FS, dir string) (*Set, error) {
	s := &Set{prefix: prefix, byName: map[string]*asset{}, paths: map[string]string{}}
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := fs.ReadFile(files, stdpath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		s.Add(entry.Name(), mime.TypeByExtension(stdpath.Ext(entry.Name())), text)
	}
	return s, nil
}

// Add adds a file to the set.
func (s *Set) Add(file, mediaType string, text []byte) {
	sum := sha256.Sum256(text)
	ext := stdpath.Ext(file)
	name := strings.TrimSuffix(file, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	s.byName[name] = &asset{mediaType: mediaType, text: text, zipped: sync.OnceValue(func() []byte { return zip(text) })}
	s.paths[file] = s.prefix + name
}

// zip returns text compressed with gzip.
func zip(text []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // fails only for an invalid level
	_, _ = w.Write(text)                                    // a write to memory does not fail
	_ = w.Close()
	return out.Bytes()
}

// Path returns the path of a file. It returns "" if there is no such file.
func (s *Set) Path(file string) string { return s.paths[file] }

// Files returns the compressed size of each file in bytes.
func (s *Set) Files() map[string]int {
	sizes := map[string]int{}
	for file, path := range s.paths {
		sizes[file] = len(s.byName[stdpath.Base(path)].zipped())
	}
	return sizes
}

// Serve answers with the asset whose name is the path value "name".
func (s *Set) Serve(w http.ResponseWriter, r *http.Request) {
	found := s.byName[r.PathValue("name")]
	if found == nil {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", found.mediaType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	if strings.HasPrefix(found.mediaType, "image/") {
		h.Set("Content-Security-Policy", sandbox)
	}
	text := found.text
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		text = found.zipped()
	}
	_, _ = w.Write(text)
}
