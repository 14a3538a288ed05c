// Command suite runs go test on packages: `make test`, `make test-race`.
//
//	suite [-slowest 20] ./... [ARGUMENTS OF GO TEST]
//
// It starts the servers once for all packages (testenv.Servers). The packages with the largest test files start
// first, so that no large package runs alone at the end. It prints a line when a package ends. It prints a failed
// test with its output when that test ends. No test runs twice. The last lines list the skipped tests with reasons,
// the failed tests, and the command that repeats the failed tests.
package main
