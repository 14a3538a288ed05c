-- +goose Up
-- Who works off what is due on idle balances. One process does so at a time, however many instances there are.
CREATE TABLE roll_turn (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one), -- there is one row
    holder text NOT NULL,                               -- a roll, or the sweep of an instance
    until  timestamptz NOT NULL                         -- the turn is free from then on
);
INSERT INTO roll_turn (holder, until) VALUES ('', '-infinity');

-- +goose Down
DROP TABLE roll_turn;
