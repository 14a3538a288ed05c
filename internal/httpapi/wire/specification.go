package wire

import _ "embed"

// Specification is the contract, in YAML.
//
//go:embed openapi.yaml
var Specification []byte
