package access

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"
)

// A secret consists of qk_, 256 random bits, and a checksum of both. It has only letters, digits and _, so a double
// click selects the whole secret. Tools that search code and logs for leaked secrets find a secret by its prefix and
// verify it by its checksum.
const (
	secretPrefix = "qk_"
	randomDigits = 43 // 62^43 > 2^256
	sumDigits    = 6  // 62^6 > 2^32
	shownDigits  = 8  // characters of a secret that lists show: enough to distinguish secrets, too few to help guessing
	digits       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// hash is the SHA-256 of a secret.
type hash [sha256.Size]byte

func hashOf(secret string) hash { return sha256.Sum256([]byte(secret)) }

// newSecret returns a new secret.
func newSecret() string {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // Read never returns an error: it ends the process instead
	text := secretPrefix + base62(new(big.Int).SetBytes(bits[:]), randomDigits)
	return text + checksum(text)
}

// shown returns the first characters of a secret. Lists show them.
func shown(secret string) string { return secret[:len(secretPrefix)+shownDigits] }

// isSecret reports whether text has the form of a secret, with the right checksum.
func isSecret(text string) bool {
	if len(text) != len(secretPrefix)+randomDigits+sumDigits || !strings.HasPrefix(text, secretPrefix) {
		return false
	}
	body := text[:len(text)-sumDigits]
	return checksum(body) == text[len(body):]
}

func checksum(text string) string {
	return base62(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(text)))), sumDigits)
}

// base62 returns n in base 62 with width digits.
func base62(n *big.Int, width int) string {
	out, base, digit := make([]byte, width), big.NewInt(int64(len(digits))), new(big.Int)
	rest := new(big.Int).Set(n)
	for i := width - 1; i >= 0; i-- {
		rest.DivMod(rest, base, digit)
		out[i] = digits[digit.Int64()]
	}
	return string(out)
}
