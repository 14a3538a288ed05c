package transport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

// certificatesEvery is the pause between two reads of the files. They are read even if their modification time has
// not changed, because some mounts replace the content without changing name or time. The files are small.
const certificatesEvery = 5 * time.Second

// CertificateFiles names PEM files.
type CertificateFiles struct {
	Cert, Key string // required; in Cert, intermediate certificates may follow the server's own
	ClientCA  string // empty: clients need no certificate
}

// Certificates has the certificate of the API and the certificate authorities of its clients. When the files change,
// new connections use the new contents. All methods are safe for concurrent use.
type Certificates struct {
	files   CertificateFiles
	log     *slog.Logger
	current atomic.Pointer[tls.Config]

	mu     sync.Mutex
	seen   [sha256.Size]byte // hash of the files at the last read, even if they were not valid
	warned warning           // the latest result of warn
}

// warning is why clients refuse a certificate because of its dates. An empty fault means that they do not.
type warning struct {
	of    *tls.Config
	fault string
}

// LoadCertificates reads the files. Its error names the file that is missing or not valid.
func LoadCertificates(files CertificateFiles, log *slog.Logger) (*Certificates, error) {
	c := &Certificates{files: files, log: log}
	if _, err := c.read(); err != nil {
		return nil, err
	}
	c.warn(time.Now())
	return c, nil
}

// Reload reads the files again. If they have changed, it logs one line. If they are not valid, the old certificate
// stays in use. It also logs one line when the certificate in use ends.
func (c *Certificates) Reload() {
	switch changed, err := c.read(); {
	case err != nil && changed:
		c.log.Error("the new TLS certificate cannot be used; the old one stays", "error", err)
	case changed:
		c.log.Info("TLS certificate reloaded", "file", c.files.Cert, "expires", c.expires())
	}
	c.warn(time.Now())
}

// warn logs one line if clients refuse the current certificate because of its dates.
func (c *Certificates) warn(now time.Time) {
	w := warning{of: c.current.Load()}
	from, until := w.of.Certificates[0].Leaf.NotBefore, c.expires()
	switch {
	case now.After(until):
		w.fault = "it has ended"
	case now.Before(from):
		w.fault = "it is not valid yet"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.fault != "" && w != c.warned {
		c.log.Warn("clients refuse the TLS certificate: replace the file, or set the clock", "reason", w.fault,
			"file", c.files.Cert, "from", from, "until", until, "now", now)
	}
	c.warned = w
}

// Watch reloads the files every few seconds until ctx ends.
func (c *Certificates) Watch(ctx context.Context) {
	backoff.Every(ctx, certificatesEvery, func(time.Time) { c.Reload() })
}

// expires returns when the current certificate expires: the earliest expiry of the certificates in its chain.
func (c *Certificates) expires() time.Time {
	pair := c.current.Load().Certificates[0]
	end := pair.Leaf.NotAfter
	for _, der := range pair.Certificate[1:] {
		if issuer, err := x509.ParseCertificate(der); err == nil && issuer.NotAfter.Before(end) {
			end = issuer.NotAfter
		}
	}
	return end
}

// config returns the TLS configuration of a listener with this protocol. Each new connection uses the newest
// certificate.
func (c *Certificates) config(protocol string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			current := c.current.Load()
			if protocol == current.NextProtos[0] {
				return current, nil
			}
			own := current.Clone()
			own.NextProtos = []string{protocol}
			return own, nil
		},
	}
}

// read reads the files and reports whether their contents have changed since the last read.
func (c *Certificates) read() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts [3][]byte
	for i, file := range []string{c.files.Cert, c.files.Key, c.files.ClientCA} {
		if file == "" {
			continue
		}
		text, fault := os.ReadFile(file)
		if fault != nil {
			err = errors.Join(err, fault)
			text = []byte(fault.Error())
		}
		parts[i] = text
	}
	sum := sha256.Sum256(bytes.Join(parts[:], []byte{0}))
	if sum == c.seen {
		return false, err
	}
	c.seen = sum
	if err != nil {
		return true, err
	}
	cfg, err := c.parse(parts[0], parts[1], parts[2])
	if err != nil {
		return true, err
	}
	c.current.Store(cfg)
	return true, nil
}

func (c *Certificates) parse(cert, key, clientCA []byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", c.files.Cert, c.files.Key, err)
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{pair}}
	if c.files.ClientCA != "" {
		cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !cfg.ClientCAs.AppendCertsFromPEM(clientCA) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", c.files.ClientCA)
		}
	}
	return cfg, nil
}
