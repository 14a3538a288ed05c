package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"strings"

	"github.com/quotasvc/quotasvc/internal/bound"
)

// keys knows who may call. So far there is one key, which may do everything; it is kept hashed, so that neither a dump of
// the process nor the time of a comparison tells it.
type keys struct{ admin [sha256.Size]byte }

func newKeys(adminKey string) (keys, error) {
	if !bound.AdminKey(adminKey) {
		return keys{}, errors.New("the admin key " + bound.MustBeAdminKey)
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
