package reference

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Document is a constant text that is served with an ETag. It is compressed for clients that accept gzip.
type Document struct {
	mediaType string
	header    map[string]string // further headers of the answer
	forms     func() (forms, error)
}

// forms has the plain form and the gzip form of a document.
type forms struct{ plain, zipped form }

type form struct {
	text []byte
	etag string
}

// newDocument returns a document with the text that write returns. Only the first request for the document calls
// write.
func newDocument(mediaType string, header map[string]string, write func() ([]byte, error)) *Document {
	return &Document{mediaType: mediaType, header: header, forms: sync.OnceValues(func() (forms, error) {
		plain, err := write()
		if err != nil {
			return forms{}, err
		}
		zipped, err := compress(plain)
		return formsOf(plain, zipped), err
	})}
}

// newZipped returns a document from its gzip form.
func newZipped(mediaType string, header map[string]string, zipped []byte) *Document {
	return &Document{mediaType: mediaType, header: header, forms: sync.OnceValues(func() (forms, error) {
		r, err := gzip.NewReader(bytes.NewReader(zipped))
		if err != nil {
			return forms{}, fmt.Errorf("open: %w", err)
		}
		plain, err := io.ReadAll(r)
		if err != nil {
			return forms{}, fmt.Errorf("expand: %w", err)
		}
		return formsOf(plain, zipped), nil
	})}
}

// formsOf returns the plain form and the gzip form, each with its own ETag, because their bytes differ.
func formsOf(plain, zipped []byte) forms {
	sum := sha256.Sum256(plain)
	tag := hex.EncodeToString(sum[:16])
	return forms{plain: form{plain, `"` + tag + `"`}, zipped: form{zipped, `"` + tag + `-gzip"`}}
}

func compress(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// Serve answers a GET or HEAD: 200 with the document, or 304 if the document's ETag is in If-None-Match. If the
// document cannot be created, it returns an error and sends nothing.
func (d *Document) Serve(w http.ResponseWriter, r *http.Request) error {
	both, err := d.forms()
	if err != nil {
		return fmt.Errorf("make the document: %w", err)
	}
	h, sent := w.Header(), both.plain
	h.Set("Cache-Control", "no-cache") // browsers store the document, and revalidate it before use
	for name, value := range d.header {
		h.Set(name, value)
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("X-Content-Type-Options", "nosniff")
	zipped := acceptsGzip(r.Header["Accept-Encoding"])
	if zipped {
		sent = both.zipped
	}
	h.Set("ETag", sent.etag)
	if names(r.Header["If-None-Match"], sent.etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", d.mediaType)
	h.Set("Content-Length", strconv.Itoa(len(sent.text)))
	if zipped {
		h.Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	if _, err := w.Write(sent.text); err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	return nil
}

// names reports whether the values of an If-None-Match header include etag. The values are split at commas, because no
// ETag of this package has a comma.
func names(values []string, etag string) bool {
	for _, part := range strings.Split(strings.Join(values, ","), ",") {
		if part = strings.TrimSpace(part); part == "*" || strings.TrimPrefix(part, "W/") == etag {
			return true
		}
	}
	return false
}

// acceptsGzip reports whether an Accept-Encoding header with these values allows gzip.
func acceptsGzip(values []string) bool {
	others, named := false, ""
	for _, part := range strings.Split(strings.Join(values, ","), ",") {
		coding, weight, _ := strings.Cut(part, ";")
		allowed := !zeroWeight(weight)
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			named = strconv.FormatBool(allowed)
		case "*":
			others = allowed
		}
	}
	return named == "true" || named == "" && others
}

// zeroWeight reports whether the weight of a coding is zero, as in q=0.
func zeroWeight(weight string) bool {
	name, number, found := strings.Cut(weight, "=")
	if !found || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return false
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return err == nil && q == 0
}
