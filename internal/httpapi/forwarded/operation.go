package forwarded

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// operationPrefix is the prefix of the operation ids of forwarded requests. A gateway may pass on a client's
// idempotency key. Because of the prefix, that key never equals a key of a backend.
const operationPrefix = "gw-"

// OperationKey returns the idempotency key of the operation: the given key with a prefix, or a random one. It never
// uses an X-Request-Id. Many gateways pass on a client's X-Request-Id, and a client that repeats a key does not pay
// again.
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
