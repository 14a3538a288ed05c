package citus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// DefaultShards is the number of shard groups of a new database. docs/decisions/citus.md has the reasons.
const DefaultShards = 32

// Distribute moves every table to its place, with its rows. It can be interrupted and run again. conn must belong to
// the role that owns the tables, lead to the coordinator, and be in no transaction.
func Distribute(ctx context.Context, conn *pgx.Conn, shards int, log *slog.Logger) error {
	if err := ready(ctx, conn); err != nil {
		return err
	}
	// Use one connection per node: foreign keys between reference tables, and to tables with data, need this.
	if _, err := conn.Exec(ctx, "SET citus.multi_shard_modify_mode = 'sequential'"); err != nil {
		return fmt.Errorf("prepare the session: %w", err)
	}
	found, err := placesOf(ctx, conn)
	if err != nil {
		return err
	}
	var moved []string
	for _, t := range Tables() {
		place, exists := found[t.Table]
		if !exists || place == t.Place {
			continue
		}
		if place != Local {
			return fmt.Errorf("the table %s is a %s table, and not a %s one: this database was distributed by hand, and cannot be used", t.Table, place, t.Place)
		}
		if err := placeTable(ctx, conn, t, shards); err != nil {
			return fmt.Errorf("make %s a %s table: %w", t.Table, t.Place, err)
		}
		moved = append(moved, t.Table)
		log.Info("table placed", "table", t.Table, "place", string(t.Place))
	}
	for _, table := range moved {
		// The rows were copied to the shards. The original rows on the coordinator are invisible now.
		if _, err := conn.Exec(ctx, "SELECT truncate_local_data_after_distributing_table($1::regclass)", table); err != nil {
			log.Warn("the rows that were distributed still take space on the coordinator", "table", table, "error", err)
		}
	}
	return nil
}

func placeTable(ctx context.Context, conn *pgx.Conn, t TableIn, shards int) error {
	var err error
	switch {
	case t.Place == Reference:
		_, err = conn.Exec(ctx, "SELECT create_reference_table($1::regclass)", t.Table)
	case t.Table == "tenants":
		_, err = conn.Exec(ctx, "SELECT create_distributed_table($1::regclass, 'tenant_id', colocate_with := 'none', shard_count := $2::integer)", t.Table, shards)
	default:
		_, err = conn.Exec(ctx, "SELECT create_distributed_table($1::regclass, 'tenant_id', colocate_with := 'tenants')", t.Table)
	}
	return err
}

// ready returns an error if a requirement of Distribute is not met.
func ready(ctx context.Context, conn *pgx.Conn) error {
	var version string
	switch err := conn.QueryRow(ctx, selectExtension).Scan(&version); {
	case errors.Is(err, pgx.ErrNoRows):
		return missing(ctx, conn)
	case err != nil:
		return fmt.Errorf("look for citus: %w", err)
	}
	if older(version, MinVersion) {
		return fmt.Errorf("the extension citus has version %s, at least %s is needed: install it on all nodes and run ALTER EXTENSION citus UPDATE", version, MinVersion)
	}
	var coordinator, known bool
	var nodes int
	err := conn.QueryRow(ctx, `SELECT citus_is_coordinator(), count(*) FILTER (WHERE groupid = 0) > 0, count(*) FILTER (WHERE isactive AND shouldhaveshards)
		FROM pg_dist_node`).Scan(&coordinator, &known, &nodes)
	switch {
	case err != nil:
		return fmt.Errorf("look for the nodes: %w", err)
	case !coordinator:
		return errors.New("this node is not the coordinator: run it with the coordinator's URL")
	case !known:
		return errors.New("the coordinator does not know its own address: run SELECT citus_set_coordinator_host('its name', its port) there as a superuser")
	case nodes == 0:
		return errors.New("no node holds shards: add one with SELECT citus_add_node('its name', its port), as a superuser on the coordinator")
	}
	return nil
}

func missing(ctx context.Context, conn *pgx.Conn) error {
	var available, loaded bool
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citus'),
		current_setting('citus.version', true) IS NOT NULL`).Scan(&available, &loaded)
	switch {
	case err != nil:
		return fmt.Errorf("look for citus: %w", err)
	case !available:
		return fmt.Errorf("citus is not installed beside this PostgreSQL: install Citus %s on all nodes (Debian: postgresql-15-citus-%s from Citus's repository)", MinVersion, MinVersion)
	case !loaded:
		return errors.New("citus is installed and not loaded: set shared_preload_libraries = 'citus' on all nodes, restart them, and run CREATE EXTENSION citus in this database on each")
	}
	return errors.New("this database does not have the extension citus: run CREATE EXTENSION citus in it on all nodes, as a superuser, and add the nodes")
}

// older reports whether a version of the extension, such as 13.2-1, is older than a minimum such as 13.2.
func older(version, minimum string) bool {
	number := func(text string) int {
		text, _, _ = strings.Cut(text, "-")
		major, minor, _ := strings.Cut(text, ".")
		a, _ := strconv.Atoi(major)
		b, _ := strconv.Atoi(minor)
		return 1000*a + b
	}
	return number(version) < number(minimum)
}
