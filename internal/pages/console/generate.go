package console

// The generator runs at a pinned version from the module cache. go.mod requires the package of the same version,
// which pages need at run time.
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1118 generate -log-level error -include-version=false
