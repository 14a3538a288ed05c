// Package migrations holds the schema's steps for goose, in order of their
// numbers. Each one is expand or contract: the service runs before and after it.
package migrations

import "embed"

// FS has the numbered .sql files at its root.
//
//go:embed *.sql
var FS embed.FS
