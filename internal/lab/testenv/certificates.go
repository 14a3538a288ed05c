package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority is a certificate authority for tests. It signs certificates for 127.0.0.1 and localhost.
type Authority struct {
	File string // path of the authority's certificate, in PEM
	Pool *x509.CertPool

	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// NewAuthority creates an authority. Its certificate is in a temporary directory of the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), Pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	der := Must(t).Get(x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key))
	a.cert = Must(t).Get(x509.ParseCertificate(der))
	a.Pool.AddCert(a.cert)
	writePEM(t, a.File, "CERTIFICATE", der)
	return a
}

// Issue writes a new certificate to certFile and its key to keyFile. It is valid for an hour.
func (a *Authority) Issue(t testing.TB, certFile, keyFile string) {
	t.Helper()
	a.IssueFor(t, certFile, keyFile, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

// IssueFor is like Issue. The certificate is valid from one instant until another.
func (a *Authority) IssueFor(t testing.TB, certFile, keyFile string, from, until time.Time) {
	t.Helper()
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1 + a.serial), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: from, NotAfter: until,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	key := newKey(t)
	der := Must(t).Get(x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key))
	private := Must(t).Get(x509.MarshalPKCS8PrivateKey(key))
	writePEM(t, keyFile, "PRIVATE KEY", private)
	writePEM(t, certFile, "CERTIFICATE", der)
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return Must(t).Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600), "testenv")
}
