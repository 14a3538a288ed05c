-- This is the catalogue for the steps of growth: one meter, and three limits. The limits apply to every check and
-- never deny.
INSERT INTO meters (meter, unit) VALUES ('api_calls', 'call');
INSERT INTO limits (rule, spec) SELECT 'per-' || n, jsonb_build_object('rule', 'per-' || n, 'per', per::jsonb, 'kind', 'token_bucket', 'rate', '1000000/s')
FROM (VALUES ('tenant', '["tenant"]'), ('route', '["tenant","route"]'), ('user', '["tenant","subject"]')) AS l (n, per);
