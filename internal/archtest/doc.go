// Package archtest tests the rules of the architecture with the Go tools alone: who
// imports whom, what pure files may use, how long files and packages may get, what the
// product's binary contains. docs/architecture.md explains the rules. golangci-lint
// checks some of them a second time, in the editor.
//
// A commit that changes the architecture changes the tables here as well.
package archtest
