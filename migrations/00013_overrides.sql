-- +goose Up
-- Rates and bursts of single tenants and subjects, instead of those of a rule of the same name: a limit, or a limit of the tenant's plan.
-- A row has no effect once it has expired, or while there is no such rule.
CREATE TABLE limit_overrides (
    rule       text COLLATE "C" NOT NULL,
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
    subject    text COLLATE "C" NOT NULL DEFAULT '',       -- '' = all subjects of the tenant
    rate       text        NOT NULL DEFAULT '',            -- '' = the rule's, for rules of kind concurrency
    burst      bigint      NOT NULL DEFAULT 0 CHECK (burst BETWEEN 0 AND 9007199254740991), -- 0 = the rate's count
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, subject, rule)                 -- what a request looks up
);
CREATE INDEX limit_overrides_of_rule ON limit_overrides (rule, tenant_id, subject);
CREATE INDEX limit_overrides_expiry ON limit_overrides (expires_at) WHERE expires_at IS NOT NULL;

-- +goose Down
DROP TABLE limit_overrides;
