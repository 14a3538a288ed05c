-- +goose Up
-- How far the list of events is complete. On Citus the positions that one transaction gives become visible node by node.
CREATE TABLE event_listing (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one), -- there is one row
    listed_to  bigint NOT NULL,                            -- whoever reads up to this position misses nothing
    given_from bigint NOT NULL,                            -- the positions that were given last, all from here
    given_to   bigint NOT NULL                             -- up to here; listed_to: they are all visible
);
INSERT INTO event_listing (listed_to, given_from, given_to)
SELECT e.newest, e.newest, e.newest FROM (SELECT coalesce(max(position), 0) AS newest FROM events) AS e;

-- +goose Down
DROP TABLE event_listing;
