// Package archtest holds the rules of the house by tests that need nothing but the
// Go tools: who imports whom, what pure files may touch, how long a file may get, what
// the product's binary contains.
// The rules and their reasons are in docs/architecture.md; the tables here are the
// same in a form that can fail. golangci-lint checks some of them a second time, in
// the editor.
//
// A change of the architecture changes the tables, in the same commit.
package archtest
