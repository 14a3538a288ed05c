package program

import (
	"context"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shell starts a shell with a script. The variable ADDRESS contains an address that the script may print.
func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(io.Discard, []string{"ADDRESS=127.0.0.1:1"}, "/bin/sh", "-c", script)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Kill() }) // in most tests the process has ended already
	return p
}

func TestProcess_Address_IsReadThenStopped(t *testing.T) {
	t.Parallel()
	p := shell(t, `echo first; echo "API http://$ADDRESS"; exec sleep 60`)
	at, err := p.Address(t.Context(), "API http://")
	assert.True(t, err == nil && at == "127.0.0.1:1", "%q, %v", at, err)
	assert.Error(t, p.Stop(t.Context()), "sleep ends with the signal's status")
	assert.NoError(t, p.Signal(syscall.SIGTERM), "a signal to an ended process")
}

func TestProcess_EndsBeforeAddress_IsAnError(t *testing.T) {
	t.Parallel()
	p := shell(t, "exit 3")
	_, err := p.Address(t.Context(), "API http://")
	assert.Error(t, err, "there is an address")
	<-p.Done()
}

func TestProcess_IgnoresSIGTERM_KilledInTime(t *testing.T) {
	t.Parallel()
	p := shell(t, `trap "" TERM; echo ready; while :; do sleep 0.05; done`)
	_, err := p.Address(t.Context(), "ready")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	assert.Error(t, p.Stop(ctx), "no error")
	<-p.Done()
}
