// Command suite runs go test on packages: `make test`, `make test-race`.
//
//	suite [-slowest 20] ./... [ARGUMENTS OF GO TEST]
//
// It starts the servers once for all packages (testenv.Servers), and the packages with the most tests first, so that none of
// them is alone at the end. It prints a line when a package ends, and a failed test with its output when that test ends.
// Nothing runs twice. The last lines name what was skipped and why, what failed, and the command that repeats it.
package main
