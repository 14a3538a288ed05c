package console

// The generator is run from the module cache at a pinned version. go.mod requires the same version of the templ
// package, which the pages need at run time.
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1118 generate -log-level error -include-version=false
