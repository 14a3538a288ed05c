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
