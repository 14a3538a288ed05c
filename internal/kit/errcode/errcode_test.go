package errcode

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/kit/body"
)

func TestOf_FirstErrorOfTheChain(t *testing.T) {
	t.Parallel()
	inner := Errorf(TenantNotFound, "tenant", "tenant %q does not exist", "acme")
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, ""},
		{context.Canceled, Internal},
		{inner, TenantNotFound},
		{fmt.Errorf("read: %w", inner), TenantNotFound},
		{&Error{Code: Unavailable, Cause: inner}, Unavailable},
		{errors.Join(&Error{Code: QueueFull}, inner), QueueFull},
	} {
		assert.Equal(t, c.want, Of(c.err), "%v", c.err)
	}
}

func TestError_Text_DetailElseFields_ThenCause(t *testing.T) {
	t.Parallel()
	fields := []body.Fault{{Field: "a", Message: "is required"}, {Field: "b", Message: "must be absent"}}
	for want, e := range map[string]*Error{
		"internal":               {Code: Internal},
		"not_found: no meter":    Errorf(NotFound, "meter", "no %s", "meter"),
		"queue_full: wait":       Errorf(QueueFull, "", "wait"),
		"unavailable: away: EOF": {Code: Unavailable, Detail: "away", Cause: errors.New("EOF")},
		"precondition_failed: a is required; b must be absent": {Code: Conflict, Fields: fields},
	} {
		assert.Equal(t, want, e.Error())
	}
	e := Errorf(NotFound, "meter", "no meter")
	assert.True(t, e.Field() == "meter" && e.Fields[0].Message == "no meter", "the field at fault is %+v", e.Fields)
	e = Errorf(QueueFull, "", "wait")
	assert.True(t, e.Field() == "" && e.Fields == nil, "no field is at fault, got %+v", e.Fields)
}
