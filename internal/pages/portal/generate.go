package portal

// The generator has the version that generate.go of the console pins.
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1118 generate -log-level error -include-version=false
