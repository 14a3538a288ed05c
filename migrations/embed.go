// Package migrations embeds the schema migrations for goose. Their order is that of their numbers. Each migration
// either expands or contracts the schema. Two versions of the service work with its result: the version before the
// migration and the version after it.
package migrations

import "embed"

// FS contains the .sql files, whose names begin with the numbers of the migrations.
//
//go:embed *.sql
var FS embed.FS
