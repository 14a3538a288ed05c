package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sizeMax is the maximum compressed size, in bytes, of all files that a browser loads in addition to the pages.
const sizeMax = 100_000

// TestAssets_OfOthers_AreAsPublished: the files of other projects are unchanged, and VENDORED.txt lists all of them.
func TestAssets_OfOthers_AreAsPublished(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("assets/VENDORED.txt")
	require.NoError(t, err)
	listed := map[string]bool{"console.css": true, "console.js": true}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), "\t")
		require.Len(t, fields, 6, "%q has %d fields", line, len(fields))
		listed[fields[0]] = true
		text, err := os.ReadFile(filepath.Join("assets", fields[0]))
		require.NoError(t, err)
		if strings.HasSuffix(fields[0], ".gz") {
			r, err := gzip.NewReader(bytes.NewReader(text))
			require.NoError(t, err)
			text, err = io.ReadAll(r)
			require.NoError(t, err)
		}
		sum := sha256.Sum256(text)
		assert.Equal(t, fields[5], hex.EncodeToString(sum[:]),
			"%s is not that of %s %s", fields[0], fields[1], fields[2])
	}
	for name := range newAssets().Files() {
		assert.True(t, listed[name], "%s is not listed", name)
	}
}

func TestAssets_SmallTogether(t *testing.T) {
	t.Parallel()
	total := 0
	for _, size := range newAssets().Files() {
		total += size
	}
	assert.True(t, total <= sizeMax, "scripts and styles have %d bytes compressed, want at most %d", total, sizeMax)
}
