package portal

// The generator runs at the version that the console pins.
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1118 generate -log-level error -include-version=false
