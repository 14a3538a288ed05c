-- The roles of quotasvc in PostgreSQL and their rights. Run it in the service's database, once as an administrator:
--
--   psql -X -v ON_ERROR_STOP=1 -d quotasvc -f deploy/postgres/roles.sql       or: quotasvc migrate roles
--
-- It can be run again at any time, even before the tables exist. Other statements wait for it only for a short time.
-- `quotasvc migrate up` runs it after its steps if the tables belong to quotasvc_owner. It changes the owner of the
-- tables (to quotasvc_owner), and the rights of these three roles and of PUBLIC.
--
--   quotasvc_owner    owns the tables. It is for migrate, partitions, archive and seal.
--   quotasvc_service  is for serve, apply, roll, verify and keys. It adds rows to the journal, to closed periods and to
--                     the audit log. It can neither change nor remove rows there, nor create, alter or drop a table.
--   quotasvc_reader   reads all tables except for the hashes of keys, the key of ids, the secrets of webhooks, and the
--                     sessions of console and portal. It is for reports and people.
--
-- The roles may log in, but have no passwords yet. Set them (\password quotasvc_service), or create login roles that
-- are members of these roles. A member of quotasvc_owner needs: ALTER ROLE that_member SET role = 'quotasvc_owner'.
-- Nobody may be a member of both quotasvc_owner and quotasvc_service.

DO $roles$
DECLARE
    place text := current_schema();
    item  record;
    part  record;
BEGIN
    -- A change of owner needs a lock. This setting bounds the time for which other statements wait behind it.
    PERFORM set_config('lock_timeout', '3s', true);
    -- On Citus: use one connection per node, because foreign keys of the catalogue need this. Other databases accept
    -- this setting and ignore it.
    PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true);

    FOR item IN SELECT unnest(ARRAY['quotasvc_owner', 'quotasvc_service', 'quotasvc_reader']) AS role LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = item.role) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', item.role);
        END IF;
    END LOOP;
    IF NOT pg_has_role(current_user, 'quotasvc_owner', 'MEMBER') THEN
        EXECUTE format('GRANT quotasvc_owner TO %I', current_user);
    END IF;

    IF NOT has_schema_privilege('quotasvc_owner', place, 'CREATE') THEN
        EXECUTE format('GRANT CREATE ON SCHEMA %I TO quotasvc_owner', place);
    END IF;
    IF has_schema_privilege('public', place, 'CREATE') THEN -- the default before PostgreSQL 15
        EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', place);
    END IF;
    FOR item IN SELECT unnest(ARRAY['quotasvc_owner', 'quotasvc_service', 'quotasvc_reader']) AS role LOOP
        IF NOT has_schema_privilege(item.role, place, 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', place, item.role);
        END IF;
    END LOOP;

    -- Rights for tables and partitions that are created before this script runs again.
    EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE quotasvc_owner IN SCHEMA %I GRANT SELECT, INSERT ON TABLES TO quotasvc_service', place);
    EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE quotasvc_owner IN SCHEMA %I GRANT SELECT ON TABLES TO quotasvc_reader', place);

    FOR item IN
        SELECT c.oid, t.name, t.service, t.reader, c.relkind, pg_get_userbyid(c.relowner) AS owner
        FROM (VALUES
            -- the journal, and other tables to which rows are only added
            ('entries',           'SELECT, INSERT',                 'SELECT'),
            ('periods',           'SELECT, INSERT',                 'SELECT'),
            ('audit',             'SELECT, INSERT',                 'SELECT'),
            ('journal_months',    'SELECT, INSERT',                 'SELECT'),
            ('rollups',           'SELECT, INSERT',                 'SELECT'),
            ('plans',             'SELECT, INSERT',                 'SELECT'),
            ('plan_allowances',   'SELECT, INSERT',                 'SELECT'),
            ('tenant_terms',      'SELECT, INSERT, DELETE',         'SELECT'), -- DELETE: a change that waits is taken back
            ('terms_chains',      'SELECT, INSERT, UPDATE',         'SELECT'),
            ('tenant_changes',    'SELECT, INSERT, DELETE',         'SELECT'), -- DELETE: keys that need not be remembered
            ('gauge_entries',     'SELECT, INSERT',                 'SELECT'),
            -- tables that are verified by the journal and written with each operation
            ('balances',          'SELECT, INSERT, UPDATE, DELETE', 'SELECT'), -- DELETE: empty balances, when their meter is deleted
            ('grants',            'SELECT, INSERT, UPDATE',         'SELECT'),
            ('holds',             'SELECT, INSERT, UPDATE',         'SELECT'),
            ('hold_lines',        'SELECT, INSERT, UPDATE',         'SELECT'),
            ('overflows',         'SELECT, INSERT, UPDATE',         'SELECT'),
            ('refunds',           'SELECT, INSERT, UPDATE',         'SELECT'),
            ('gauges',            'SELECT, INSERT, UPDATE',         'SELECT'),
            -- the catalogue
            ('meters',            'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            ('tenants',           'SELECT, INSERT, UPDATE',         'SELECT'),
            ('limits',            'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            ('limit_overrides',   'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            ('blocks',            'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            -- keys; revoked keys are not deleted
            ('keys',              'SELECT, INSERT, UPDATE',         'SELECT'),
            ('key_secrets',       'SELECT, INSERT, UPDATE, DELETE', ''),
            ('signing_keys',      'SELECT',                         ''), -- a migration inserts the row
            -- events and webhooks
            ('events',            'SELECT, INSERT, UPDATE',         'SELECT'), -- UPDATE: their position in the list
            ('event_listing',     'SELECT, UPDATE',                 'SELECT'),
            ('event_marks',       'SELECT, INSERT, DELETE',         'SELECT'),
            ('grant_reminders',   'SELECT, INSERT, DELETE',         'SELECT'),
            ('webhooks',          'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            ('webhook_secrets',   'SELECT, INSERT, UPDATE, DELETE', ''),
            ('webhook_deliveries', 'SELECT, INSERT, UPDATE',        'SELECT'),
            ('river_job',         'SELECT, INSERT, UPDATE, DELETE', 'SELECT'), -- the queue of deliveries
            ('river_leader',      'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            ('river_migration',   'SELECT',                         'SELECT'),
            ('river_notification', 'SELECT, INSERT, DELETE',        'SELECT'),
            ('river_queue',       'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            ('console_sessions',  'SELECT, INSERT, UPDATE, DELETE', ''),
            ('portal_sessions',   'SELECT, INSERT, UPDATE, DELETE', ''),
            -- jobs of the service
            ('rolls',             'SELECT, INSERT, UPDATE',         'SELECT'),
            ('roll_turn',         'SELECT, UPDATE',                 'SELECT'),
            ('verifications',     'SELECT, INSERT, UPDATE',         'SELECT'),
            ('denial_counts',     'SELECT, INSERT, UPDATE',         'SELECT'),
            ('denials_recent',    'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            ('shadow_counts',     'SELECT, INSERT, UPDATE',         'SELECT'),
            ('checkpoints',       'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            ('full_pass',         'SELECT, INSERT, UPDATE, DELETE', 'SELECT'),
            -- written by commands of the owner
            ('chain_start',       'SELECT',                         'SELECT'),
            ('seals',             'SELECT',                         'SELECT'),
            ('sealed_heads',      'SELECT',                         'SELECT'),
            ('archives',          'SELECT',                         'SELECT'),
            ('database_identity', 'SELECT',                         'SELECT'),
            ('goose_db_version',  'SELECT',                         'SELECT'),
            ('entries_default',   'SELECT',                         'SELECT')
        ) AS t (name, service, reader)
        JOIN pg_class c ON c.relname = t.name AND c.relnamespace = place::regnamespace
        ORDER BY t.name
    LOOP
        FOR part IN -- the table itself and its partitions
            SELECT item.oid AS oid UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = item.oid
        LOOP
            IF EXISTS (SELECT FROM pg_class WHERE oid = part.oid AND pg_get_userbyid(relowner) <> 'quotasvc_owner') THEN
                EXECUTE format('ALTER %s %s OWNER TO quotasvc_owner', CASE item.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, part.oid::regclass);
            END IF;
            EXECUTE format('REVOKE ALL ON TABLE %s FROM PUBLIC, quotasvc_service, quotasvc_reader', part.oid::regclass);
            EXECUTE format('GRANT %s ON TABLE %s TO quotasvc_service', item.service, part.oid::regclass);
            IF item.reader <> '' THEN
                EXECUTE format('GRANT %s ON TABLE %s TO quotasvc_reader', item.reader, part.oid::regclass);
            END IF;
        END LOOP;
    END LOOP;

    FOR item IN SELECT unnest(ARRAY['river_job_id_seq', 'river_notification_id_seq']) AS name LOOP -- sequences of the service's inserts
        IF to_regclass(item.name) IS NOT NULL THEN
            EXECUTE format('GRANT USAGE ON SEQUENCE %I TO quotasvc_service', item.name);
        END IF;
    END LOOP;
END
$roles$;
