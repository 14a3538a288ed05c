package main

import "testing"

func TestExecute_InvalidCommandLine_ExitUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--no-such-flag"}, {"no-such-command"}, {"run", "--against", "/no/such/file"}, {"baseline"}} {
		if status := execute(args); status != exitUsage {
			t.Errorf("%v: status %d, want %d", args, status, exitUsage)
		}
	}
}
