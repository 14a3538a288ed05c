package reference

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/v2"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer is the answer to a request for a document, with its body.
type answer struct {
	StatusCode int
	Header     http.Header
	Body       []byte
}

// get sends a request for document d. headers alternates names and values.
func get(t *testing.T, d *Document, method string, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	require.NoError(t, d.Serve(w, r))
	return answer{w.Code, w.Header(), w.Body.Bytes()}
}

func documents() map[string]*Document {
	all := New()
	return map[string]*Document{"yaml": all.YAML, "json": all.JSON, "page": all.Page, "viewer": all.Viewer}
}

func TestDocument_BothForms_AreTheSameText(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		plain, zipped := get(t, d, "GET"), get(t, d, "GET", "Accept-Encoding", "br, gzip")
		assert.True(t, zipped.Header.Get("Content-Encoding") == "gzip" && plain.Header.Get("Content-Encoding") == "",
			"%s: encodings %q and %q", name, zipped.Header.Get("Content-Encoding"), plain.Header.Get("Content-Encoding"))
		packed := zipped.Body
		assert.True(t, zipped.Header.Get("Content-Length") == strconv.Itoa(len(packed)),
			"%s: length %s of %d", name, zipped.Header.Get("Content-Length"), len(packed))
		r, err := gzip.NewReader(bytes.NewReader(packed))
		require.NoError(t, err)
		unpacked, err := io.ReadAll(r)
		if want := plain.Body; err != nil || !bytes.Equal(unpacked, want) || len(want) == 0 {
			t.Errorf("%s: %d and %d bytes (%v)", name, len(unpacked), len(want), err)
		}
		a, b := plain.Header.Get("ETag"), zipped.Header.Get("ETag")
		assert.True(t, a != b && a != "" && b != "", "%s: ETags %s and %s", name, a, b)
	}
}

func TestDocument_SameETag_Is304(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		for _, encoding := range []string{"gzip", "identity"} {
			etag := get(t, d, "GET", "Accept-Encoding", encoding).Header.Get("ETag")
			for _, asked := range []string{etag, `"other", ` + etag, "W/" + etag, "*"} {
				a := get(t, d, "GET", "Accept-Encoding", encoding, "If-None-Match", asked)
				assert.True(t, a.StatusCode == http.StatusNotModified && len(a.Body) == 0 && a.Header.Get("ETag") == etag &&
					a.Header.Get("Content-Length") == "", "%s, %s: %d", name, asked, a.StatusCode)
			}
			a := get(t, d, "GET", "Accept-Encoding", encoding, "If-None-Match", `"other"`)
			assert.Equal(t, http.StatusOK, a.StatusCode, "%s, another", name)
		}
	}
}

func TestDocument_HeadAndRange_AreWhole(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		whole := get(t, d, "GET")
		head := get(t, d, "HEAD")
		assert.Equal(t, whole.Header, head.Header, name)
		assert.Empty(t, head.Body, name)
		part := get(t, d, "GET", "Range", "bytes=5-9")
		assert.True(t, part.StatusCode == http.StatusOK && bytes.Equal(part.Body, whole.Body),
			"%s: a range is %d", name, part.StatusCode)
	}
}

func TestAcceptsGzip_ByWeight(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.000": false, "*": true, "*;q=0": false,
		"*, gzip;q=0": false, "gzip;q=0, *": false, "identity": false, "x-gzip": true, "gzip;q=x": true, "gzipped": false, ",,;": false,
	} {
		assert.True(t, acceptsGzip([]string{header}) == want, "%q: %t", header, !want)
	}
}

// The contract in JSON has the same content as the contract in YAML, in the same order.
func TestReference_JSONEqualsYAML(t *testing.T) {
	t.Parallel()
	text := get(t, New().JSON, "GET").Body
	var got, want map[string]any
	require.NoError(t, json.Unmarshal(text, &got))
	require.NoError(t, yaml.Unmarshal(Specification, &want))
	again, err := json.Marshal(want)
	require.NoError(t, err)
	clear(want)
	require.NoError(t, json.Unmarshal(again, &want))
	assert.Equal(t, want, got)
	assert.False(t, !bytes.HasPrefix(text, []byte(`{"openapi":`)) && !bytes.HasPrefix(text, []byte(`{"openapi": `)),
		"it begins with %.40s", text)
}

// The page loads only files that the server has, and no file from another host.
func TestReference_Page_LoadsItsOwnFilesOnly(t *testing.T) {
	t.Parallel()
	a := get(t, New().Page, "GET")
	text := string(a.Body)
	for _, want := range []string{`src="` + strings.TrimPrefix(ViewerPath, "/") + `"`, `spec-url="v1/openapi.json"`} {
		assert.Contains(t, text, want, "it lacks %s", want)
	}
	assert.NotContains(t, text, "//", "it refers to another host")
	policy := a.Header.Get("Content-Security-Policy")
	assert.True(t, strings.HasPrefix(policy, "default-src 'none'") && !strings.Contains(policy, "http") && !strings.Contains(policy, "'unsafe-eval'") &&
		!strings.Contains(policy, "*"), policy)
}

func TestReference_Viewer_IsThePublishedOne(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256(get(t, New().Viewer, "GET").Body)
	if got := hex.EncodeToString(sum[:]); got != "dcaf76612bc4a3fbcc923a8966dee2f6146a5f32e5ce1b6f02dd60cbbf89500b" {
		t.Errorf("the viewer's sum is %s; see doc.go", got)
	}
}
