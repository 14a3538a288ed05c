package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestExecute_InvalidCommandLine_ExitUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--no-such-flag"}, {"no-such-command"}, {"run", "--against", "/no/such/file"}, {"baseline"}} {
		assert.Equal(t, exitUsage, execute(args), "%v", args)
	}
}
