package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The table of settings names each variable of serve, and none that serve does not read.
func TestSettings_Table_NamesAllOfServe(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n## Settings\n")
	if !found {
		t.Fatal("docs/operations.md has no section Settings")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	variable := regexp.MustCompile("`(QUOTASVC_[A-Z_]+)`")
	var named []string
	for line := range strings.Lines(table) {
		if cell, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | "); row {
			for _, m := range variable.FindAllStringSubmatch(cell, -1) {
				named = append(named, m[1])
			}
		}
	}
	var c cli
	parser, err := kong.New(&c, kong.Vars{"listen": "", "ops_listen": "", "clock_skew_max": "1s", "version": ""})
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, command := range parser.Model.Children {
		if command.Name == "serve" {
			for _, group := range command.AllFlags(true) {
				for _, f := range group {
					read = append(read, f.Envs...)
				}
			}
		}
	}
	for _, name := range read {
		if !slices.Contains(named, name) {
			t.Errorf("the table lacks %s", name)
		}
	}
	for _, name := range named {
		if !slices.Contains(read, name) {
			t.Errorf("serve does not read %s", name)
		}
	}
}
