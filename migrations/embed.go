// Package migrations embeds the schema migrations for goose. They run in the order of their numbers. Each migration
// either expands or contracts the schema. The versions of the service before and after the migration both work with the
// changed schema.
package migrations

import "embed"

// FS contains the .sql files, whose names begin with the numbers of the migrations.
//
//go:embed *.sql
var FS embed.FS
