// Package namedsql reads SQL statements from embedded .sql files.
//
// A statement starts with a line "-- name: X" and ends with a semicolon. The comment lines below the name say what the
// statement locks, in which order, and what a missing row means. Load removes the comments: they are not sent to
// PostgreSQL.
//
// One file serves PostgreSQL and Citus. A line that is only for Citus begins with "-- citus: ". Usually it is a
// condition that compares tenant_id once more. A line that is only for PostgreSQL ends with " -- plain".
package namedsql
