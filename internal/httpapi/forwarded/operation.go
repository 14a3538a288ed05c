package forwarded

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// operationPrefix is the prefix of the operation ids of forwarded requests. A gateway may pass on a client's
// idempotency key. With the prefix, this key differs from every key that a backend may have used for another
// operation.
const operationPrefix = "gw-"

// OperationKey returns the idempotency key of the operation: operationPrefix, followed by the given key. Instead of a
// key that is too long, its hash follows. Instead of an empty key, a random text follows. An X-Request-Id is never
// used as the key. Many gateways pass on the X-Request-Id of a client, and a client that repeated it would not be
// charged again.
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
