// Package archtest tests the rules of the architecture with the Go tools alone. The rules define which package may
// import which, what pure files may use, how long files and packages may be, and what the product's binary may
// contain. docs/architecture.md explains the rules. golangci-lint also checks some of them, in the editor.
//
// A commit that changes the architecture changes the tables here as well.
package archtest
