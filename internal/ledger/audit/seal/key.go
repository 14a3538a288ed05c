package seal

import (
	"crypto/rand"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Signer signs checkpoints with a private key.
type Signer = note.Signer

// Verifier verifies signatures with a public key.
type Verifier = note.Verifier

// NewKey returns a new Ed25519 key pair: private signs checkpoints and stays secret; public is for those who keep
// seals. The name distinguishes keys.
func NewKey(name string) (private, public string, err error) {
	private, public, err = note.GenerateKey(rand.Reader, name)
	if err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	if _, err := ReadPrivateKey(private); err != nil {
		return "", "", fmt.Errorf("the name %q cannot be that of a key: it must have no space and no plus", name)
	}
	return private, public, nil
}

// ReadPrivateKey reads a private key. Its errors do not contain the key.
func ReadPrivateKey(text string) (Signer, error) {
	signer, err := note.NewSigner(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("is not a private key of `quotasvc seal --new-key`: %w", err)
	}
	return signer, nil
}

// ReadPublicKey reads a public key.
func ReadPublicKey(text string) (Verifier, error) {
	verifier, err := note.NewVerifier(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("is not a public key of `quotasvc seal --new-key`: %w", err)
	}
	return verifier, nil
}
