// Package archtest tests the rules of the architecture with the Go tools alone. They say who
// imports whom, what pure files may use, how long files and packages may get, and what the
// product's binary contains. docs/architecture.md explains them. golangci-lint checks some of
// them a second time, in the editor.
//
// A commit that changes the architecture changes the tables here as well.
package archtest
