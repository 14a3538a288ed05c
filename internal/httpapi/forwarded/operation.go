package forwarded

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// operationPrefix is the prefix of the operation ids of forwarded requests. So a client whose keys a gateway passes on
// cannot use the key of a backend.
const operationPrefix = "gw-"

// OperationKey returns the key of the operation: the given one with a prefix, or a random one. An X-Request-Id never becomes a
// key: many gateways pass on what the client sent under that name, and a client that repeats a key does not pay again.
func OperationKey(given string, random func() string) string {
	switch {
	case given == "":
		return operationPrefix + random()
	case len(given) > bound.MaxKey-len(operationPrefix):
		sum := sha256.Sum256([]byte(given))
		return operationPrefix + hex.EncodeToString(sum[:])
	default:
		return operationPrefix + given
	}
}
