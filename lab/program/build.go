package program

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Build compiles quotasvc from the source in root into dir, and returns the path of the program. If race is set, the
// program has the race detector, which needs a C compiler.
func Build(ctx context.Context, root, dir string, race bool) (string, error) {
	exe := filepath.Join(dir, "quotasvc")
	args := []string{"build", "-C", root, "-buildvcs=false", "-o", exe}
	if race {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(ctx, "go", append(args, "./cmd/quotasvc")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build quotasvc: %w\n%s", err, out)
	}
	return exe, nil
}
