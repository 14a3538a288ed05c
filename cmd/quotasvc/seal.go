package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
)

// sealCmd is the command that seals a day of the journal, or creates a key pair for seals.
type sealCmd struct {
	databaseConfig
	Day     string `placeholder:"YYYY-MM-DD" help:"The day to seal, in UTC: everything that was entered until its end and is not sealed yet. Default: the last day that has ended."`
	Out     string `type:"path" placeholder:"FILE" help:"Write the seal to this file. Default: to standard output. A different seal in that file is not overwritten."`
	Key     secret `name:"seal-key" env:"QUOTASVC_SEAL_KEY" placeholder:"KEY" help:"Private key that signs the seal, made by --new-key."`
	KeyFile string `name:"seal-key-file" env:"QUOTASVC_SEAL_KEY_FILE" type:"path" placeholder:"FILE" help:"File with that key."`
	NewKey  string `type:"path" placeholder:"FILE" help:"Create a key pair instead: the private key goes to this new file, the public key to standard output."`
	KeyName string `default:"quotasvc" placeholder:"NAME" help:"Name of the new key, such as ledger.example.com. Signatures show it."`
}

// Run seals the day. It writes the seal to the file of --out, or to standard output. With --new-key it creates a key
// pair instead.
func (c *sealCmd) Run(ctx context.Context, log *slog.Logger) error {
	if c.NewKey != "" {
		return c.makeKey()
	}
	var check checker
	c.databaseConfig.check(&check)
	options := audit.SealOptions{Day: parseDay(&check, c.Day), Signer: c.signer(&check)}
	if err := check.err(); err != nil {
		return err
	}
	if err := checkSchema(ctx, string(c.DatabaseURL)); err != nil {
		return err
	}
	var sealed *seal.Seal
	err := withVerifier(ctx, string(c.DatabaseURL), log, func(v *verifier.Verifier) (err error) {
		show, finish := countingBar("balances")
		defer finish()
		options.Progress = func(s audit.Sealing) { show(s.Balances) }
		sealed, err = v.Seal(ctx, options)
		return err
	})
	if reason, refused := verifier.Refused(err); refused {
		check.require(false, "--day", "%s", reason)
		return check.err()
	}
	if err != nil {
		return err
	}
	return c.write(sealed)
}

// write writes the seal to the file of --out or to standard output. It also prints what was sealed.
func (c *sealCmd) write(s *seal.Seal) error {
	text, err := s.Encode()
	if err != nil {
		return err
	}
	if c.Out == "" {
		if _, err := os.Stdout.Write(text); err != nil {
			return fmt.Errorf("the day is sealed, but the seal was not printed: %w; run the command again", err)
		}
	} else if err := writeOnce(c.Out, text); err != nil {
		return fmt.Errorf("the day is sealed, but the seal was not written: %w; run the command again with another --out", err)
	}
	signed := "not signed: quotasvc seal --new-key FILE makes a key, --seal-key-file uses it"
	if name := s.Signer(); name != "" {
		signed = "signed by " + name
	}
	fmt.Fprintf(os.Stderr, "%s: %d balances, seal number %d, %s. Keep it where nobody who can write the database can change it.\n",
		s.Day, s.Heads, s.Position+1, signed)
	return nil
}

// writeOnce writes text to a new file. If the file exists with the same text, it does nothing. If the file has
// another text, it returns an error.
func writeOnce(path string, text []byte) error {
	if old, err := os.ReadFile(path); err == nil {
		if bytes.Equal(old, text) {
			return nil
		}
		return fmt.Errorf("%s has something else", path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// makeKey creates a key pair for signing seals. It writes the private key to a new file, and prints the public key.
func (c *sealCmd) makeKey() error {
	var check checker
	private, public, err := seal.NewKey(c.KeyName)
	check.require(err == nil, "--key-name", "%v", err)
	if err := check.err(); err != nil {
		return err
	}
	f, err := os.OpenFile(c.NewKey, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("the key needs a new file: %w", err)
	}
	_, err = f.WriteString(private + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the key: %w", err)
	}
	fmt.Println(public)
	fmt.Fprintf(os.Stderr, "%s has the private key: keep it from whoever can write the database. The line above is the public key, for quotasvc verify --seal-key.\n", c.NewKey)
	return nil
}

// signer reads the private key that signs seals. It returns nil if no key is configured.
func (c *sealCmd) signer(check *checker) seal.Signer {
	text, setting := string(c.Key), settingName("seal-key")
	if c.KeyFile != "" {
		setting = settingName("seal-key-file")
		check.require(c.Key == "", setting, "cannot be combined with --seal-key")
		stored, err := os.ReadFile(c.KeyFile)
		check.require(err == nil, setting, "%v", err)
		if err != nil {
			return nil
		}
		text = string(stored)
	}
	if text == "" && c.KeyFile == "" {
		return nil
	}
	signer, err := seal.ReadPrivateKey(text)
	check.require(err == nil, setting, "%v", err)
	return signer
}

// parseDay parses the value of --day. It returns the zero time if text is empty.
func parseDay(check *checker, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	day, err := time.Parse(time.DateOnly, text)
	check.require(err == nil, "--day", "%q is not a day such as 2026-11-22", text)
	return day
}

// readSeal reads the file of a seal. The argument key is a public key, or empty. If it is a public key, the seal's
// signature must belong to it.
func readSeal(path, key string) (*seal.Seal, error) {
	var check checker
	var public seal.Verifier
	if key != "" {
		var err error
		public, err = seal.ReadPublicKey(key)
		check.require(err == nil, "--seal-key", "%v", err)
	}
	text, err := os.ReadFile(path)
	check.require(err == nil, "--seal", "%v", err)
	if err := check.err(); err != nil {
		return nil, err
	}
	s, err := seal.Parse(text, public)
	if err != nil {
		return nil, fmt.Errorf("%s is not a seal as it was made: %w", path, err)
	}
	return s, nil
}

// verifySeal compares the journal with a seal and prints the result.
func verifySeal(ctx context.Context, databaseURL string, s *seal.Seal, log *slog.Logger) error {
	var report *audit.SealReport
	err := withVerifier(ctx, databaseURL, log, func(v *verifier.Verifier) (err error) {
		show, finish := countingBar("entries")
		defer finish()
		report, err = v.CheckSeal(ctx, s, func(r audit.SealReport) { show(r.Entries) })
		return err
	})
	if reason, refused := verifier.Refused(err); refused {
		return fmt.Errorf("the seal of %s cannot be checked here: %s", s.Day, reason)
	}
	if err != nil {
		return err
	}
	printDifferences(os.Stdout, report.Differences, report.Count)
	verdict := "the journal is what was sealed"
	if !report.Clean() {
		verdict = fmt.Sprintf("%d DIFFERENCES", report.Count)
	}
	archived := ""
	if report.Archived > 0 {
		archived = fmt.Sprintf(" (the entries of %d are archived: check them with --archive)", report.Archived)
	}
	fmt.Fprintf(os.Stdout, "%d seals until %s, %d heads of %d balances%s, %d entries: %s\n",
		report.Seals, s.Day, report.Heads, report.Balances, archived, report.Entries, verdict)
	if !report.Clean() {
		return exitStatus(1)
	}
	return nil
}
