// Package namedsql reads SQL statements from embedded .sql files.
//
// A statement starts with a line "-- name: X" and ends with a semicolon. The comment lines below the name say what the statement
// locks, in which order, and what a missing row means. Comments stay in the files: they are for readers.
package namedsql
