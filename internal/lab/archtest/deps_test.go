package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notInTheProduct lists the modules, and the packages of this repository, that the product's binary must not contain.
// They are for measurements, charts and tests.
var notInTheProduct = slices.Concat(laboratoryAlone, []string{
	"github.com/testcontainers", "pgregory.net/rapid", "testing",
	module + "/lab", module + "/internal/lab/testenv", module + "/internal/lab/archtest",
})

// laboratory returns the packages among dependencies that the product must not contain.
func laboratory(dependencies []string) []string {
	var found []string
	for _, pkg := range dependencies {
		for _, not := range notInTheProduct {
			if pkg == not || strings.HasPrefix(pkg, not+"/") {
				found = append(found, pkg)
			}
		}
	}
	return found
}

func TestProduct_Dependencies_NoBenchmarkOrTestPackage(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/quotasvc")
	list.Dir = "../../.."
	out, err := list.Output()
	require.NoError(t, err)
	dependencies := strings.Fields(string(out))
	assert.True(t, len(dependencies) >= 100, "only %d packages are listed", len(dependencies))
	for _, pkg := range laboratory(dependencies) {
		t.Errorf("the product's binary contains %s", pkg)
	}
}

func TestProduct_Dependencies_ViolationsAreFound(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"gonum.org/v1/plot/vg", "golang.org/x/image/font", module + "/lab/bench", "testing"} {
		assert.Len(t, laboratory([]string{"fmt", pkg}), 1, "%s passes", pkg)
	}
	found := laboratory([]string{"golang.org/x/images", "testing2", module + "/internal/gate"})
	assert.Empty(t, found, "refused: %v", found)
}
