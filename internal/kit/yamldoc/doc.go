// Package yamldoc reads YAML as JSON, so that files and request bodies are decoded in the same way. It also records
// the line of each value.
package yamldoc
