package console

// The generator runs at a pinned version from the module cache; go.mod has the package of its version that pages need at run time.
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1118 generate -log-level error -include-version=false
