package look

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheme_NothingOfASettingReachesTheStyle(t *testing.T) {
	t.Parallel()
	for _, theme := range []string{
		"accent=red", "accent=#fff", "accent=#0a7d4f;}body{background:url(//evil)", "accent=#0a7d4", "accent=#+a7d4f", "accent=#0a7d4fff", "accent=url(x)", "--x=#0a7d4f", "accent",
		"</style><script>=#000000", "accent=0a7d4fa",
	} {
		_, err := New("", theme, "")
		assert.Error(t, err, "%q passes", theme)
	}
	l, err := New("Acme Cloud", " accent=#0A7D4F , ground-dark=#000000", "")
	require.NoError(t, err)
	style := string(l.Style)
	if !regexp.MustCompile(`^(:root\{(--[a-z-]+:#[0-9a-f]{6};?)+\}|@media \(prefers-color-scheme:dark\)\{:root\{(--[a-z-]+:#[0-9a-f]{6};?)+\}\}|\n)+$`).MatchString(style) {
		t.Errorf("the style has more than colours: %s", style)
	}
	for _, want := range []string{"--accent:#0a7d4f;", "--ground:#000000;", "--ground:#fbfbfa;"} {
		assert.Contains(t, style, want, "the style lacks %s", want)
	}
}

func TestTheme_WhatCannotBeRead_Refused(t *testing.T) {
	t.Parallel()
	for theme, names := range map[string]string{"accent=#ffee00": "accent", "text=#999999": "text", "ground-dark=#888888": "-dark", "text-dark=#000000": "text-dark"} {
		if _, err := ParseTheme(theme); err == nil || !strings.Contains(err.Error(), names) || !strings.Contains(err.Error(), "contrast") {
			t.Errorf("%s: %v", theme, err)
		}
	}
	for _, c := range []struct {
		a, b colour
		want float64
	}{{colour{}, colour{255, 255, 255}, 21}, {colour{9, 9, 9}, colour{9, 9, 9}, 1}, {colour{0x76, 0x76, 0x76}, colour{255, 255, 255}, 4.54}} {
		got := contrast(c.a, c.b)
		assert.True(t, got >= c.want-0.01 && got <= c.want+0.01, "%s on %s has %f, want %f", c.a, c.b, got, c.want)
	}
	for _, m := range defaults {
		assert.True(t, contrast(m.dim(), m.ground) >= contrastMin && contrast(on(m.accent), m.accent) >= contrastMin,
			"%+v cannot be read", m)
	}
}

func TestAncestors_OriginsOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		origins []string
		want    string
	}{
		{nil, "frame-ancestors 'none'"},
		{[]string{"self"}, "frame-ancestors 'self'"},
		{[]string{"https://app.example.com", " https://*.example.com:8443"}, "frame-ancestors https://app.example.com https://*.example.com:8443"},
	} {
		got, err := Ancestors(c.origins)
		assert.True(t, err == nil && got == c.want, "%q: %q, %v", c.origins, got, err)
	}
	for _, bad := range []string{"*", "app.example.com", "https://", "https://a.example/x", "https://a.example; script-src *", "'none'", "https://a b", "https://a.example\r\nX: y", "data:", ""} {
		got, err := Ancestors([]string{bad})
		assert.Error(t, err, "%q passes as %q", bad, got)
	}
	_, err := Ancestors(make([]string, AncestorsMax+1))
	assert.Error(t, err, "many pass")
}

func TestLogo_PNGAndSVG(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for text, want := range map[string]string{"\x89PNG\r\n\x1a\nrest": "image/png", "<svg xmlns='x'/>": "image/svg+xml", "<?xml version='1.0'?>\n<svg/>": "image/svg+xml"} {
		l, err := New("", "", file("good", text))
		assert.True(t, err == nil && l.LogoType == want && string(l.Logo) == text, "%q: %v", text, err)
	}
	for _, text := range []string{"", "<html><svg>", "GIF89a", "<svg>\xff", "<svg>" + strings.Repeat(" ", LogoMax)} {
		_, err := New("", "", file("bad", text))
		assert.Error(t, err, "%.20q passes", text)
	}
	_, err := New("", "", filepath.Join(dir, "none"))
	assert.Error(t, err, "a file that does not exist passes")
	_, err = New(strings.Repeat("x", NameMax+1), "", "")
	assert.Error(t, err, "a long name passes")
}
