package catalog

import (
	"regexp"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// validate returns nil if o has no faults. Otherwise it returns an *errcode.Error with errcode.InvalidArgument and
// all faults.
func validate(o body.Checked) error { return invalid(o.Check(body.Given{})) }

// invalid returns nil if faults is empty. Otherwise it returns an *errcode.Error with errcode.InvalidArgument and
// these faults.
func invalid(faults []body.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	return errcode.Invalid(faults...)
}

// rateForm is the syntax of a rate. The limiter checks its meaning and its bounds.
var rateForm = regexp.MustCompile(`^[1-9][0-9]{0,15}/[0-9]{0,9}[a-z]{1,7}$`)
