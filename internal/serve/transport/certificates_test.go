package transport

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestCertificates_FilesChange_NewConnectionsUseThem(t *testing.T) {
	t.Parallel()
	authority, dir := testenv.NewAuthority(t), t.TempDir()
	files := CertificateFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	authority.Issue(t, files.Cert, files.Key)
	var log bytes.Buffer
	c, err := LoadCertificates(files, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	s := start(t, func(http.ResponseWriter, *http.Request) {}, func(cfg *Config) { cfg.TLS = c })
	serial := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{RootCAs: authority.Pool, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12})
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		state := conn.ConnectionState()
		assert.EqualValues(t, "http/1.1", state.NegotiatedProtocol, "protocol")
		return state.PeerCertificates[0].SerialNumber.Int64()
	}
	assert.EqualValues(t, 2, serial())
	end := time.Until(c.expires())
	assert.True(t, end >= 58*time.Minute && end <= time.Hour, "the certificate ends in %s, want an hour", end)
	authority.Issue(t, files.Cert, files.Key)
	c.Reload()
	c.Reload()
	assert.EqualValues(t, 3, serial(), "after the change")
	assert.Equal(t, 1, strings.Count(log.String(), "reloaded"), "%s", &log)
	for _, broken := range []string{"nonsense", ""} {
		require.NoError(t, os.WriteFile(files.Cert, []byte(broken), 0o600))
		c.Reload()
		c.Reload()
		c.Reload()
	}
	assert.EqualValues(t, 3, serial(), "after two broken files")
	assert.Equal(t, 2, strings.Count(log.String(), "the old one stays"), "%s", &log)
	_, err = tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{RootCAs: authority.Pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	assert.Error(t, err, "TLS 1.1 is accepted")
}

// Clients refuse a certificate that has ended or is not valid yet. The log says so once for each certificate: at the
// start, after a reload, and when the certificate in use ends.
func TestCertificates_DatesDoNotFit_Warns(t *testing.T) {
	t.Parallel()
	authority, dir := testenv.NewAuthority(t), t.TempDir()
	files := CertificateFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	now := time.Now()
	issue := func(from, until time.Duration) {
		authority.IssueFor(t, files.Cert, files.Key, now.Add(from), now.Add(until))
	}
	var log bytes.Buffer
	warnings := func(text string) int {
		return strings.Count(log.String(), "reason=\"it "+text)
	}
	issue(-2*time.Hour, -time.Hour)
	c, err := LoadCertificates(files, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	assert.Equal(t, 1, warnings("has ended"), "at the start: %s", &log)
	c.Reload()
	assert.Equal(t, 1, warnings("has ended"), "the same certificate: %s", &log)
	issue(-3*time.Hour, -time.Hour)
	c.Reload()
	assert.Equal(t, 2, warnings("has ended"), "another certificate: %s", &log)
	issue(30*time.Minute, time.Hour)
	c.Reload()
	assert.Equal(t, 1, warnings("is not valid yet"), "%s", &log)
	issue(-time.Hour, 30*time.Minute)
	c.Reload()
	assert.Equal(t, 2, warnings("has ended"), "a good certificate: %s", &log)
	for range 2 {
		c.warn(now.Add(31 * time.Minute))
	}
	assert.Equal(t, 3, warnings("has ended"), "after its end: %s", &log)
}

func TestCertificates_ClientCA_ClientsNeedOne(t *testing.T) {
	t.Parallel()
	authority, other, dir := testenv.NewAuthority(t), testenv.NewAuthority(t), t.TempDir()
	files := CertificateFiles{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), ClientCA: authority.File}
	authority.Issue(t, files.Cert, files.Key)
	c, err := LoadCertificates(files, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	s := start(t, func(http.ResponseWriter, *http.Request) {}, func(cfg *Config) { cfg.TLS = c })
	for name, signer := range map[string]*testenv.Authority{"none": nil, "other": other, "right": authority} {
		cfg := &tls.Config{RootCAs: authority.Pool, MinVersion: tls.VersionTLS12}
		if signer != nil {
			cert, key := filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
			signer.Issue(t, cert, key)
			pair := testenv.Must(t).Get(tls.LoadX509KeyPair(cert, key))
			cfg.Certificates = []tls.Certificate{pair}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}, Timeout: testenv.Patience}
		response, err := client.Get(s.url)
		if err == nil {
			_ = response.Body.Close()
		}
		assert.True(t, (err == nil) == (name == "right"), "%s: %v", name, err)
	}
	_, err = LoadCertificates(CertificateFiles{Cert: files.Cert, Key: files.Key, ClientCA: files.Key}, slog.New(slog.DiscardHandler))
	assert.Error(t, err, "a key is no authority")
}
