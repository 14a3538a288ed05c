package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/quotasvc/quotasvc/client"
)

// Connection has the flags that say how to reach the service.
type Connection struct {
	URL     string `name:"url" env:"QUOTASVC_URL" placeholder:"URL" group:"Service" help:"Address of the service, as in http://127.0.0.1:8080."`
	Key     string `name:"key" env:"QUOTASVC_KEY" placeholder:"KEY" group:"Service" help:"Key of the caller. Other users of this machine can read command lines: use the variable, or a context."`
	Context string `name:"context" env:"QUOTASVC_CONTEXT" placeholder:"NAME" group:"Service" help:"A context of the configuration file; it takes precedence over --url and --key."`
	Config  string `name:"config" env:"QUOTASVC_CONFIG" placeholder:"FILE" group:"Service" help:"The configuration file. Default: quotasvc/config.yaml in $XDG_CONFIG_HOME or ~/.config."`
	JSON    bool   `name:"json" help:"Print the answer as JSON: an object, or one item a line."`
}

// configFile is the content of the configuration file.
type configFile struct {
	Current  string             `yaml:"current"` // name of the context that is used if no other is given
	Contexts map[string]service `yaml:"contexts"`
}

type service struct {
	URL     string `yaml:"url"`
	Key     string `yaml:"key"`
	KeyFile string `yaml:"key_file"` // file that contains the key; relative to the directory of the configuration file
}

// UsageError is the error for a wrong command line or a wrong configuration.
type UsageError struct{ text string }

func (e *UsageError) Error() string { return e.text }

func usage(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Given reports whether flags or environment variables name a service. The current context of the configuration file
// does not count.
func (c *Connection) Given() bool { return c.URL != "" || c.Context != "" }

// Dial returns a client for the service. It sends no request.
func (c *Connection) Dial(io *IO) (*client.Client, error) {
	if err := c.resolve(io); err != nil {
		return nil, err
	}
	q, err := client.New(client.Options{URL: c.URL, Key: c.Key, KeepDenials: true})
	if err != nil {
		return nil, usage("%s", strings.NewReplacer("quotasvc: Options.URL", "--url", "quotasvc: Options.Key", "--key", "(or set", "(set").Replace(err.Error()))
	}
	return q, nil
}

// ProvideClient returns the client that a command gets as an argument of Run. kong calls it before Run.
func (c *Connection) ProvideClient(io *IO) (*client.Client, error) { return c.Dial(io) }

// resolve sets URL and Key from the flags, the environment or a context.
func (c *Connection) resolve(io *IO) error {
	if c.URL != "" && c.Key != "" && c.Context == "" {
		return nil
	}
	file, path, err := c.read()
	if err != nil {
		return err
	}
	name := c.Context
	if name == "" && c.URL == "" {
		name = file.Current
	}
	if name == "" {
		switch {
		case c.URL == "":
			return usage("which service? Set QUOTASVC_URL and QUOTASVC_KEY (`quotasvc dev` prints both), or a context in %s", path)
		default:
			return usage("--key (QUOTASVC_KEY): is required with --url")
		}
	}
	s, ok := file.Contexts[name]
	if !ok {
		return usage("%s has no context %q; it has: %s", path, name, strings.Join(slices.Sorted(maps.Keys(file.Contexts)), ", "))
	}
	key := s.Key
	if s.KeyFile != "" {
		if key, err = s.keyIn(filepath.Dir(path)); err != nil {
			return usage("context %s: %v", name, err)
		}
	} else if info, err := os.Stat(path); err == nil && key != "" && info.Mode().Perm()&0o077 != 0 {
		fmt.Fprintf(io.Err, "quotasvc: other users of this machine can read the key in %s: chmod 600 it\n", path)
	}
	c.URL, c.Key = s.URL, key
	return nil
}

// keyIn returns the key from the context's key file. A relative path is relative to dir.
func (s *service) keyIn(dir string) (string, error) {
	path := s.KeyFile
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
		path = filepath.Join(home, path[2:])
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// read reads the configuration file. If the file is missing and --config does not name it, it counts as empty.
func (c *Connection) read() (configFile, string, error) {
	var file configFile
	path := c.Config
	if path == "" {
		dir := os.Getenv("XDG_CONFIG_HOME")
		if home, err := os.UserHomeDir(); dir == "" && err == nil {
			dir = filepath.Join(home, ".config")
		}
		path = filepath.Join(dir, "quotasvc", "config.yaml")
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && c.Config == "" {
		return file, path, nil
	}
	if err != nil {
		return file, path, usage("read the configuration: %v", err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return file, path, nil
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		return file, path, usage("%s: %s", path, strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	return file, path, nil
}
