package pg

import (
	"encoding/base64"
	"strings"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
)

// PageMax bounds one page of a list.
const PageMax = 500

// ValidLimit returns an error unless n is in 1..PageMax.
func ValidLimit(n int) *errcode.Error {
	if n < 1 || n > PageMax {
		return errcode.Errorf(errcode.InvalidArgument, "limit", "must be an integer from 1 to %d", PageMax)
	}
	return nil
}

// SealCursor returns the cursor of a page. parts are the position of the page's last item. A cursor is opaque to
// callers. Ids contain no newline, so newlines separate the parts.
func SealCursor(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, "\n")))
}

// OpenCursor returns the n parts of a cursor, all empty for an empty cursor.
func OpenCursor(cursor string, n int) ([]string, error) {
	if cursor == "" {
		return make([]string, n), nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.Split(string(raw), "\n")
	if err != nil || len(parts) != n || len(raw) > 1024 || !bound.Storable(string(raw)) {
		return nil, errcode.Errorf(errcode.InvalidArgument, "cursor", "unknown cursor")
	}
	return parts, nil
}
