package testenv

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// recorder is a test that notes its end.
type recorder struct{ failed, ended bool }

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow()              { r.ended = true }

func TestMust_Error_EndsTheTest(t *testing.T) {
	t.Parallel()
	var r recorder
	assert.Equal(t, 7, Must(&r).Get(7, nil))
	assert.Equal(t, recorder{}, r)
	Must(&r).Get(7, errors.New("no"))
	assert.Equal(t, recorder{failed: true, ended: true}, r)
}
