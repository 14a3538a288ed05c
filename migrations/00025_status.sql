-- +goose Up
-- What the status of the service asks: the refusals of the last hour over all tenants, and the last jobs.

-- Rows come about in the order of their minutes, so an index of ranges of pages is small and costs a flush of refusals nothing.
CREATE INDEX denial_counts_of_minute ON denial_counts USING brin (minute) WITH (autosummarize = on);
CREATE INDEX rolls_started ON rolls (started_at);
CREATE INDEX verifications_started ON verifications (started_at);

-- +goose Down
DROP INDEX verifications_started;
DROP INDEX rolls_started;
DROP INDEX denial_counts_of_minute;
