// Package migrations embeds the schema migrations for goose, ordered by number.
// Each migration either expands or contracts the schema. The service version
// before it and the version after it both run on the result.
package migrations

import "embed"

// FS contains the numbered .sql files at its root.
//
//go:embed *.sql
var FS embed.FS
