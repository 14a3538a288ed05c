// Package postgres embeds roles.sql, which creates the roles of the service in PostgreSQL. `quotasvc migrate roles`
// runs it.
package postgres

import _ "embed" // for RolesSQL

// RolesSQL creates the roles and sets their rights. It is plain SQL in one statement, and can be run again at any
// time.
//
//go:embed roles.sql
var RolesSQL string

// The roles that RolesSQL creates.
const (
	OwnerRole   = "quotasvc_owner"
	ServiceRole = "quotasvc_service"
	ReaderRole  = "quotasvc_reader"
)
