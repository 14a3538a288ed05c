// Package namedsql reads SQL statements from embedded .sql files.
//
// A statement starts with a line "-- name: X" and ends with a semicolon. The comment lines below the name say what the statement
// locks, in which order, and what a missing row means. Comments stay in the files: they are for readers.
//
// One text serves PostgreSQL and Citus. What only Citus needs stands behind "-- citus: ", mostly a condition that repeats the tenants; what only
// PostgreSQL understands ends with " -- plain".
package namedsql
