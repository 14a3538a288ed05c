// Package yamldoc reads YAML as JSON, so that a file and a request body are decoded alike. It also returns the line
// of each value.
package yamldoc
