-- +goose Up
-- The members of the metadata of requests by which use of a meter can be divided, such as model. Versions before this one do not name the column.
ALTER TABLE meters ADD COLUMN dimensions text[] NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE meters DROP COLUMN dimensions;
