package catalog

import (
	"regexp"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// validate returns nil, or an *errcode.Error with errcode.InvalidArgument and all faults of o.
func validate(o body.Checked) error { return invalid(o.Check(body.Given{})) }

// invalid returns nil if there are no faults, and otherwise an *errcode.Error with errcode.InvalidArgument.
func invalid(faults []body.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return &errcode.Error{Code: errcode.InvalidArgument, Fields: faults}
}

// rateForm is the syntax of a rate. The limiter checks its meaning and its bounds.
var rateForm = regexp.MustCompile(`^[1-9][0-9]{0,15}/[0-9]{0,9}[a-z]{1,7}$`)
