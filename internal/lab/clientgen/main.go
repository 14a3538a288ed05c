package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/getkin/kin-openapi/openapi3"
)

// main writes the generated files. Its argument is the root of the repository.
func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clientgen ROOT")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "clientgen:", err)
		os.Exit(1)
	}
}

func generate(root string) error {
	contract, err := openapi3.NewLoader().LoadFromFile(filepath.Join(root, "internal/httpapi/reference/openapi.yaml"))
	if err != nil {
		return fmt.Errorf("read the contract: %w", err)
	}
	operations, err := readOperations(contract)
	if err != nil {
		return err
	}
	methods, err := methodsOf(operations, codesOf(contract))
	if err != nil {
		return err
	}
	table, err := tableOf(root)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"client/operations.gen.go": methods, "docs/sdks.md": table} {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
