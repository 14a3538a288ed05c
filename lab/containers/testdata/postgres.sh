#!/bin/sh
# The entry point of the stand-in for the image of PostgreSQL. It does what that image promises, as far as
# docker-compose.yml and internal/lab/testenv need it: it creates the cluster, the user and the database at the first
# start, and opens TCP only after that.
set -eu
run() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
mkdir -p "$PGDATA"
chown postgres:postgres "$PGDATA"
chmod 700 "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	echo "$POSTGRES_PASSWORD" >/tmp/password
	chown postgres /tmp/password
	run initdb --no-sync --username="$POSTGRES_USER" --pwfile=/tmp/password $POSTGRES_INITDB_ARGS
	rm /tmp/password
	echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
	echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
	run pg_ctl --wait --options="-c listen_addresses=''" start
	run psql --username="$POSTGRES_USER" --dbname=postgres --command="CREATE DATABASE $POSTGRES_DB"
	run pg_ctl --wait --mode=fast stop
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
