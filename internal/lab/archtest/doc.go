// Package archtest tests the rules of the architecture with the Go tools alone. The rules define which packages a
// package may import, and what pure files may use. They limit the length of files and packages, and the content of the
// product's binary. docs/architecture.md explains the rules. golangci-lint also checks some of them, in the editor.
//
// A commit that changes the architecture changes the tables here as well.
package archtest
