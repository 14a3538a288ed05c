package testenv

import (
	_ "embed"
	"strings"
)

//go:embed testdata/odd-metadata.jsonl
var oddMetadata string

// OddMetadata returns odd values of metadata that the service accepts, as JSON. The tests of all readers use them, also
// those of the SDKs.
func OddMetadata() []string { return strings.Split(strings.TrimSpace(oddMetadata), "\n") }
