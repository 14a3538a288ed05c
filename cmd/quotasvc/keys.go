package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/outbox/auditlog"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

// keysCmd has the commands that manage API keys in the database. They need no API key, so they can create the first
// one before the service runs.
type keysCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create a key and print its secret, which is shown only once."`
	List   keyListCmd   `cmd:"" help:"List the keys, without secrets."`
	Rotate keyRotateCmd `cmd:"" help:"Give a key a new secret and print it. The old one works until the overlap ends."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key. Every instance refuses it within a second."`
}

type keyCreateCmd struct {
	databaseConfig
	Name      string        `required:"" placeholder:"NAME" help:"Name of the key's user, for people. The audit log shows it."`
	Scope     []string      `required:"" aliases:"scopes" placeholder:"SCOPE,..." help:"What it may do: use, read, admin (which includes both)."`
	Tenant    string        `placeholder:"TENANT" help:"The only tenant that it may access. Default: all."`
	ExpiresIn time.Duration `name:"expires-in" xor:"expires" placeholder:"DURATION" help:"How long it works, such as 2160h for 90 days. Default: for ever."`
	ExpiresAt time.Time     `name:"expires-at" xor:"expires" placeholder:"TIME" help:"When it stops working (RFC 3339), instead of --expires-in."`
	JSON      bool          `help:"Print JSON."`
}

// Run creates an API key and prints its secret.
func (c *keyCreateCmd) Run(ctx context.Context) error {
	n := access.New{Name: c.Name, Scopes: c.Scope, Tenant: c.Tenant, ExpiresAt: c.ExpiresAt}
	if c.ExpiresIn != 0 {
		n.ExpiresAt = time.Now().Add(c.ExpiresIn)
	}
	return withKeys(ctx, &c.databaseConfig, func(ctx context.Context, s *access.Store) error {
		k, secret, err := s.Create(ctx, n)
		if err != nil {
			return err
		}
		return printSecret(os.Stdout, &k, secret, c.JSON)
	})
}

type keyListCmd struct {
	databaseConfig
	Tenant string `placeholder:"TENANT" help:"Only keys of this tenant."`
	JSON   bool   `help:"Print JSON, one key a line."`
}

// Run lists the API keys.
func (c *keyListCmd) Run(ctx context.Context) error {
	return withKeys(ctx, &c.databaseConfig, func(ctx context.Context, s *access.Store) error {
		out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		if !c.JSON {
			fmt.Fprintln(out, "KEY\tNAME\tSCOPES\tTENANT\tSECRET\tSTATUS\tEXPIRES\tLAST USED")
		}
		page := listing.Query{Limit: listing.Max, Tenant: c.Tenant}
		for {
			list, err := s.List(ctx, page)
			if err != nil {
				return err
			}
			for i := range list.Items {
				if err := printKey(out, &list.Items[i], c.JSON); err != nil {
					return err
				}
			}
			if page.Cursor = list.NextCursor; page.Cursor == "" {
				return out.Flush()
			}
		}
	})
}

type keyRotateCmd struct {
	databaseConfig
	Key     string        `arg:"" help:"The key's id."`
	Overlap time.Duration `default:"0s" placeholder:"DURATION" help:"How much longer the old secret works, at most 168h. Default: not at all."`
	JSON    bool          `help:"Print JSON."`
}

// Run gives an API key a new secret and prints it.
func (c *keyRotateCmd) Run(ctx context.Context) error {
	if c.Overlap < 0 || c.Overlap > access.OverlapMax {
		return &configError{[]string{fmt.Sprintf("--overlap: is %s; must be between 0s and %s", c.Overlap, access.OverlapMax)}}
	}
	return withKeys(ctx, &c.databaseConfig, func(ctx context.Context, s *access.Store) error {
		k, secret, err := s.Rotate(ctx, c.Key, c.Overlap, anyKey)
		if err != nil {
			return err
		}
		return printSecret(os.Stdout, &k, secret, c.JSON)
	})
}

type keyRevokeCmd struct {
	databaseConfig
	Key string `arg:"" help:"The key's id."`
}

// Run revokes an API key.
func (c *keyRevokeCmd) Run(ctx context.Context) error {
	return withKeys(ctx, &c.databaseConfig, func(ctx context.Context, s *access.Store) error {
		if err := s.Revoke(ctx, c.Key, anyKey); err != nil {
			return err
		}
		fmt.Printf("%s is revoked\n", c.Key)
		return nil
	})
}

// anyKey allows a command to change any API key, because a user who can write to the database has all rights.
func anyKey(*access.Key) error { return nil }

// withKeys calls the function `do` with the store of the API keys in the database.
func withKeys(ctx context.Context, cfg *databaseConfig, do func(context.Context, *access.Store) error) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	if err := checkSchema(ctx, string(cfg.DatabaseURL)); err != nil {
		return err
	}
	target, err := databaseTarget(ctx, string(cfg.DatabaseURL))
	if err != nil {
		return err
	}
	pool, err := openPool(ctx, string(cfg.DatabaseURL), catalogPool, catalogConns, nil)
	if err != nil {
		return err
	}
	defer pool.Close()
	keys := access.NewStore(pgstore.New(pool, pgstore.Config{Target: target}))
	err = do(asCommand(ctx, "keys"), keys)
	e, ok := errors.AsType[*errcode.Error](err)
	switch {
	case ok && len(e.Fields) > 0:
		lines := make([]string, len(e.Fields))
		for i, f := range e.Fields {
			lines[i] = f.Field + " " + f.Message
		}
		return &configError{lines}
	case ok && e.Detail != "":
		return errors.New(e.Detail)
	}
	return err
}

// asCommand returns a context for changes by a command. The audit log names the command and the user who runs it.
func asCommand(ctx context.Context, command string) context.Context {
	name := "quotasvc " + command
	if u, err := user.Current(); err == nil {
		name += " (" + u.Username + ")"
	}
	return auditlog.With(ctx, &auditlog.Actor{KeyID: auditlog.Command, Name: name, Admin: true})
}

// printedKey is an API key as JSON, with the field names of the API.
type printedKey struct {
	KeyID      string        `json:"key_id"`
	Name       string        `json:"name"`
	Scopes     []string      `json:"scopes"`
	Tenant     string        `json:"tenant,omitempty"`
	Prefix     string        `json:"prefix"`
	Secret     string        `json:"secret,omitempty"`
	Status     access.Status `json:"status"`
	CreatedAt  time.Time     `json:"created_at"`
	ExpiresAt  *time.Time    `json:"expires_at"`
	LastUsedAt *time.Time    `json:"last_used_at"`
}

func printed(k *access.Key, secret string) printedKey {
	return printedKey{
		KeyID: k.ID, Name: k.Name, Scopes: k.Scopes.Names(), Tenant: k.Tenant, Prefix: k.Prefix, Secret: secret, Status: k.Status,
		CreatedAt: k.CreatedAt, ExpiresAt: period.OrNil(k.ExpiresAt), LastUsedAt: period.OrNil(k.LastUsedAt),
	}
}

// printSecret prints an API key with its secret.
func printSecret(out io.Writer, k *access.Key, secret string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(printed(k, secret))
	}
	_, err := fmt.Fprintf(out, "key     %s\nscopes  %s\ntenant  %s\nsecret  %s\n\nThe secret is shown only once. Send it as: Authorization: Bearer <secret>\n",
		k.ID, k.Scopes, cmp.Or(k.Tenant, "all"), secret)
	return err
}

// printKey prints one API key of a list.
func printKey(out io.Writer, k *access.Key, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(printed(k, ""))
	}
	_, err := fmt.Fprintln(out, strings.Join([]string{
		k.ID, k.Name, k.Scopes.String(), cmp.Or(k.Tenant, "all"), k.Prefix + "...", string(k.Status), orTime(k.ExpiresAt), orTime(k.LastUsedAt),
	}, "\t"))
	return err
}

func orTime(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.RFC3339)
}
