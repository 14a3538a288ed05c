package reference

import (
	_ "embed"
	"fmt"

	"github.com/goccy/go-yaml"
)

// ViewerPath is the path from which the page loads the viewer. The path contains the version of the viewer, so that
// browsers may cache the script without asking again.
const ViewerPath = "/docs/redoc-2.5.4.js"

// Specification is the contract, in YAML.
//
//go:embed openapi.yaml
var Specification []byte

//go:embed page.html
var page []byte

//go:embed redoc.standalone.js.gz
var viewer []byte

// Reference has the documents of the API reference.
type Reference struct {
	YAML, JSON   *Document // the contract
	Page, Viewer *Document // the page and its script
}

// New returns a Reference. Each of its documents is created at the first request for it.
func New() *Reference {
	return &Reference{
		YAML: newDocument("application/yaml", nil, func() ([]byte, error) { return Specification, nil }),
		JSON: newDocument("application/json", nil, func() ([]byte, error) {
			text, err := yaml.YAMLToJSON(Specification)
			if err != nil {
				return nil, fmt.Errorf("write the contract as JSON: %w", err)
			}
			return text, nil
		}),
		Page: newDocument("text/html; charset=utf-8", map[string]string{
			// The viewer creates style elements, and starts a worker for its search from a blob URL.
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; worker-src blob:; " +
				"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"Referrer-Policy": "no-referrer",
		}, func() ([]byte, error) { return page, nil }),
		Viewer: newZipped("text/javascript; charset=utf-8", map[string]string{"Cache-Control": "public, max-age=31536000, immutable"}, viewer),
	}
}
