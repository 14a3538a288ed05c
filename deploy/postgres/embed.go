// Package postgres embeds roles.sql, which creates the service's roles in PostgreSQL. `quotasvc migrate roles` runs
// it.
package postgres

import _ "embed" // for RolesSQL

// RolesSQL is the SQL that creates the roles and sets their rights. It is one statement of plain SQL, and can be run
// again at any time.
//
//go:embed roles.sql
var RolesSQL string

// The roles that RolesSQL creates.
const (
	OwnerRole   = "quotasvc_owner"
	ServiceRole = "quotasvc_service"
	ReaderRole  = "quotasvc_reader"
)
