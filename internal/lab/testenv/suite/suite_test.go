package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample is a module with one package for each kind of result. The key is the path of a file.
var sample = map[string]string{
	"go.mod":          "module sample\n\ngo 1.21\n",
	"good/a_test.go":  "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) { t.Log(\"quiet\") }\nfunc TestLeftOut(t *testing.T) { t.Skip(\"there is no moon\") }\n",
	"wrong/a_test.go": "package wrong\n\nimport \"testing\"\n\nfunc TestWrong(t *testing.T) { t.Run(\"part\", func(t *testing.T) { t.Error(\"two is not three\") }) }\nfunc TestRight(t *testing.T) {}\n",
	"panic/a_test.go": "package panics\n\nimport \"testing\"\n\nfunc TestPanic(t *testing.T) { panic(\"out of luck\") }\n",
	"main/a_test.go":  "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { m.Run(); fmt.Println(\"a goroutine is left\"); os.Exit(3) }\nfunc TestFine(t *testing.T) {}\n",
	"build/a_test.go": "package build\n\nimport \"testing\"\n\nfunc TestBuild(t *testing.T) { undefined() }\n",
}

// enter writes a module and changes to its directory.
func enter(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
}

func TestSuite_EveryKindOfEnd_Told(t *testing.T) {
	enter(t, sample)
	packages, err := list(t.Context(), []string{"./..."})
	require.True(t, err == nil && len(packages) == 5, "%v, %v", packages, err)
	assert.EqualValues(t, "sample/main", packages[0], "the largest tests come first, not %s", packages)
	var out bytes.Buffer
	ok, err := follow(t.Context(), &out, nil, packages, []string{"-count=1"}, 1)
	text := out.String()
	assert.True(t, !ok && err == nil, "ok %t, error %v\n%s", ok, err, text)
	for what, pattern := range map[string]string{
		"a package that passed":     `(?m)^ok    good +\d+\.\d s   at `,
		"a failed test":             `(?m)^FAIL wrong TestWrong after `,
		"its output":                `two is not three`,
		"a panic":                   `out of luck`,
		"a fault after the tests":   `a goroutine is left`,
		"what does not compile":     `undefined: undefined`,
		"what was left out, reason": `(?m)^NOT TESTED HERE:\n  good TestLeftOut: .*there is no moon$`,
		"how to repeat it":          `(?m)^  go test -count=1 -run '\^TestWrong\$' sample/wrong$`,
		"how to repeat a package":   `(?m)^  go test -count=1 sample/main$`,
		"the slowest":               `(?m)^The slowest packages:\n.*\n\nThe slowest tests:\n.*$`,
		"the sum":                   `(?m)^3 passed, 4 failed, 1 skipped$`,
	} {
		assert.True(t, regexp.MustCompile(pattern).MatchString(text), "the output lacks %s, %s", what, pattern)
	}
	assert.NotContains(t, text, "quiet", "a test that passed prints its log")
	if t.Failed() {
		t.Log(text)
	}
}

func TestSuite_AllPass_Ok(t *testing.T) {
	enter(t, map[string]string{"go.mod": sample["go.mod"], "good/a_test.go": sample["good/a_test.go"]})
	var out bytes.Buffer
	ok, err := follow(t.Context(), &out, nil, []string{"sample/good"}, []string{"-count=1"}, 0)
	assert.True(t, ok && err == nil && strings.HasSuffix(out.String(), "\n1 passed, 0 failed, 1 skipped\n"),
		"ok %t, error %v\n%s", ok, err, out.String())
	_, err = list(t.Context(), []string{"./nothing"})
	assert.Error(t, err, "packages that do not exist are listed")
}
