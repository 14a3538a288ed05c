package httpapi

import (
	"strconv"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
)

// The state of a balance or of a tenant, to which a change can be bound.
const (
	headerETag    = "ETag"
	headerIfMatch = "If-Match"
)

// sendETag says which state is answered: a balance's seq, a tenant's version.
func (x *exchange) sendETag(state int64) {
	set(x.Response().Header(), headerETag, `"`+strconv.FormatInt(state, 10)+`"`)
}

// ifMatch returns the state that an If-Match header wants, nil if there is none. of says whose state that is. One tag is
// taken: who sends "*" or several has not looked at what is to be changed.
func (x *exchange) ifMatch(of string) (*int64, error) {
	values := x.Request().Header[headerIfMatch]
	if len(values) == 0 {
		return nil, nil //nolint:nilnil // no header is no condition
	}
	tag := values[0]
	if n := len(tag); len(values) == 1 && n > 2 && tag[0] == '"' && tag[n-1] == '"' {
		if state, ok := body.ParseInteger(tag[1 : n-1]); ok && state <= bound.MaxAmount {
			return &state, nil
		}
	}
	return nil, body.Refuse(headerIfMatch, `must be the ETag of the %s in quotes, such as "17"`, of)
}
