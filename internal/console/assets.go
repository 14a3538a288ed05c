package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	stdpath "path"
	"strings"
	"sync"
)

//go:embed assets/*.js assets/*.css
var assetFiles embed.FS

// assets are the scripts and styles. Their paths have a part of their hash, so a browser keeps them until they change.
type assets struct {
	byName map[string]*asset // by the name in a path
	paths  map[string]string // by the name of the file
}

type asset struct {
	mediaType string
	text      []byte
	zipped    func() []byte
}

// newAssets reads the embedded files.
func newAssets() *assets {
	a := &assets{byName: map[string]*asset{}, paths: map[string]string{}}
	entries, _ := assetFiles.ReadDir("assets") // embedded: it is there
	for _, entry := range entries {
		text, _ := assetFiles.ReadFile("assets/" + entry.Name())
		sum := sha256.Sum256(text)
		ext := stdpath.Ext(entry.Name())
		name := strings.TrimSuffix(entry.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		a.byName[name] = &asset{mediaType: mime.TypeByExtension(ext), text: text, zipped: sync.OnceValue(func() []byte { return zip(text) })}
		a.paths[entry.Name()] = Prefix + "assets/" + name
	}
	return a
}

// zip compresses text.
func zip(text []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level exists
	_, _ = w.Write(text)                                    // memory takes it
	_ = w.Close()
	return out.Bytes()
}

// path returns the path of a file.
func (a *assets) path(file string) string { return a.paths[file] }

// serve answers with an asset.
func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	found := a.byName[r.PathValue("name")]
	if found == nil {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", found.mediaType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	text := found.text
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		text = found.zipped()
	}
	_, _ = w.Write(text)
}
