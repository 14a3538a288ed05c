package portal

// The version of the generator is the same as in generate.go of the console.
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.1118 generate -log-level error -include-version=false
