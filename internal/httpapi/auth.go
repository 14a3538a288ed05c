package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
)

// AdminKeyMin is the shortest admin key in bytes: 32 random characters cannot be guessed.
const AdminKeyMin = 32

// keys knows who may call. So far there is one key, which may do everything; it is kept hashed, so that neither a dump of
// the process nor the time of a comparison tells it.
type keys struct{ admin [sha256.Size]byte }

func newKeys(adminKey string) (keys, error) {
	if !isPrintable(adminKey, '!', 4096) || len(adminKey) < AdminKeyMin {
		return keys{}, fmt.Errorf("the admin key must be %d to 4096 visible ASCII characters; it has %d bytes", AdminKeyMin, len(adminKey))
	}
	return keys{admin: sha256.Sum256([]byte(adminKey))}, nil
}

// authenticate checks an Authorization header.
func (k *keys) authenticate(authorization string) error {
	scheme, key, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return &refusal{code: codeUnauthenticated}
	}
	given := sha256.Sum256([]byte(strings.TrimLeft(key, " ")))
	if subtle.ConstantTimeCompare(given[:], k.admin[:]) != 1 {
		return &refusal{code: codeUnauthenticated}
	}
	return nil
}
