// Package namedsql reads SQL statements from embedded .sql files.
//
// A statement starts with a line "-- name: X" and ends with a semicolon. The comment lines below the name say what the
// statement locks, in which order, and what a missing row means. Comments are for readers of the files and are not
// sent.
//
// One file serves PostgreSQL and Citus. A line that is only for Citus begins with "-- citus: "; mostly it is a
// condition that repeats the tenants. A line that is only for PostgreSQL ends with " -- plain".
package namedsql
