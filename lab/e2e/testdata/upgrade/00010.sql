--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: archives; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.archives (
    month date NOT NULL,
    manifest bytea NOT NULL,
    archived_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone
);


--
-- Name: balances; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.balances (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    seq bigint DEFAULT 0 NOT NULL,
    plan text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    plan_version integer DEFAULT 0 NOT NULL,
    allowance bigint DEFAULT 0 NOT NULL,
    renews boolean DEFAULT false NOT NULL,
    period_start timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    period_end timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    opening bigint DEFAULT 0 NOT NULL,
    granted bigint DEFAULT 0 NOT NULL,
    refunded bigint DEFAULT 0 NOT NULL,
    used bigint DEFAULT 0 NOT NULL,
    expired bigint DEFAULT 0 NOT NULL,
    adjusted bigint DEFAULT 0 NOT NULL,
    held bigint DEFAULT 0 NOT NULL,
    overage bigint DEFAULT 0 NOT NULL,
    owed bigint DEFAULT 0 NOT NULL,
    settled bigint DEFAULT 0 NOT NULL,
    forgiven_seq bigint DEFAULT 0 NOT NULL,
    head_grant text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    head_source text DEFAULT ''::text NOT NULL,
    head_remaining bigint DEFAULT 0 NOT NULL,
    next_event_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    updated_at timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    carried bigint DEFAULT 0 NOT NULL,
    span_used bigint DEFAULT 0 NOT NULL,
    span_end timestamp with time zone DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone NOT NULL,
    roll_at timestamp with time zone,
    chain bytea,
    CONSTRAINT balances_head_within_remaining CHECK (((head_remaining >= 0) AND (head_remaining <= ((((((opening + granted) + refunded) - used) - expired) + adjusted) - held)))),
    CONSTRAINT balances_owed_is_overage CHECK ((((owed >= 0) AND (owed <= overage)) AND ((settled >= 0) AND (settled <= used)) AND ((forgiven_seq >= 0) AND (forgiven_seq <= seq)))),
    CONSTRAINT balances_parts_not_negative CHECK (((seq >= 0) AND (opening >= 0) AND (granted >= 0) AND (refunded >= 0) AND (used >= 0) AND (expired >= 0) AND (held >= 0) AND (overage >= 0))),
    CONSTRAINT balances_period_ordered CHECK ((period_start <= period_end)),
    CONSTRAINT balances_remaining_not_negative CHECK ((((((((opening + granted) + refunded) - used) - expired) + adjusted) - held) >= 0))
)
WITH (fillfactor='60', autovacuum_vacuum_scale_factor='0.05', autovacuum_vacuum_cost_delay='1');


--
-- Name: blocks; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.blocks (
    kind text NOT NULL,
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C",
    action text NOT NULL,
    expires_at timestamp with time zone,
    reason text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT blocks_action_check CHECK ((action = ANY (ARRAY['block'::text, 'allow'::text]))),
    CONSTRAINT blocks_kind_check CHECK ((kind = ANY (ARRAY['tenant'::text, 'subject'::text, 'ip'::text])))
);


--
-- Name: chain_start; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.chain_start (
    only_row boolean DEFAULT true NOT NULL,
    at timestamp with time zone NOT NULL,
    CONSTRAINT chain_start_only_row_check CHECK (only_row)
);


--
-- Name: checkpoints; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.checkpoints (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    remaining bigint NOT NULL,
    chain bytea NOT NULL,
    state jsonb NOT NULL,
    archived boolean DEFAULT false NOT NULL,
    made_at timestamp with time zone NOT NULL,
    CONSTRAINT checkpoints_seq_check CHECK ((seq >= 1))
);


--
-- Name: database_identity; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.database_identity (
    only_row boolean DEFAULT true NOT NULL,
    database_id uuid DEFAULT gen_random_uuid() NOT NULL,
    CONSTRAINT database_identity_only_row_check CHECK (only_row)
);


--
-- Name: entries; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
)
PARTITION BY RANGE (month);


--
-- Name: entries_2026_08; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2026_08 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2026_09; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2026_09 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2026_10; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2026_10 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2026_11; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2026_11 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2026_12; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2026_12 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_01; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_01 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_02; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_02 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_03; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_03 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_04; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_04 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_05; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_05 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_06; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_06 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_07; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_07 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_08; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_08 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_09; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_09 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_10; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_10 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_2027_11; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.entries_2027_11 (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    month date NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    remaining_after bigint NOT NULL,
    item integer NOT NULL,
    requested bigint,
    fingerprint bytea,
    created_at timestamp with time zone NOT NULL,
    effective_at timestamp with time zone,
    op_subject text COLLATE pg_catalog."C",
    detail jsonb,
    metadata jsonb,
    CONSTRAINT entries_amount_check CHECK ((amount >= 0)),
    CONSTRAINT entries_remaining_after_check CHECK ((remaining_after >= 0))
);


--
-- Name: entries_default; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.entries_default AS
 SELECT 1 AS "none"
  WHERE false;


--
-- Name: full_pass; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.full_pass (
    only_row boolean DEFAULT true NOT NULL,
    "position" jsonb NOT NULL,
    saved_at timestamp with time zone NOT NULL,
    CONSTRAINT full_pass_only_row_check CHECK (only_row)
);


--
-- Name: goose_db_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.goose_db_version (
    id integer NOT NULL,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp timestamp without time zone DEFAULT now() NOT NULL
);


--
-- Name: goose_db_version_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.goose_db_version ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.goose_db_version_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: grants; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.grants (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    amount bigint NOT NULL,
    priority integer NOT NULL,
    effective_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    cost_basis text,
    reason text,
    operation_id text NOT NULL COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL,
    remaining bigint NOT NULL,
    held bigint DEFAULT 0 NOT NULL,
    status text NOT NULL,
    CONSTRAINT grants_amount_check CHECK (((amount >= 1) AND (amount <= '9007199254740991'::bigint))),
    CONSTRAINT grants_check CHECK (((remaining + held) <= amount)),
    CONSTRAINT grants_check1 CHECK ((effective_at < expires_at)),
    CONSTRAINT grants_held_check CHECK ((held >= 0)),
    CONSTRAINT grants_priority_check CHECK (((priority >= 0) AND (priority <= 1000))),
    CONSTRAINT grants_remaining_check CHECK ((remaining >= 0)),
    CONSTRAINT grants_source_check CHECK ((source = ANY (ARRAY['allowance'::text, 'topup'::text, 'promo'::text, 'rollover'::text, 'refund'::text, 'adjustment'::text]))),
    CONSTRAINT grants_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'active'::text, 'exhausted'::text, 'expired'::text, 'voided'::text])))
);


--
-- Name: hold_lines; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.hold_lines (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    hold_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    item integer NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    grant_id text NOT NULL COLLATE pg_catalog."C",
    source text NOT NULL,
    price bigint NOT NULL,
    amount bigint NOT NULL,
    captured bigint DEFAULT 0 NOT NULL,
    returned bigint DEFAULT 0 NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT hold_lines_amount_check CHECK ((amount >= 1)),
    CONSTRAINT hold_lines_captured_check CHECK ((captured >= 0)),
    CONSTRAINT hold_lines_check CHECK (((captured + returned) <= amount)),
    CONSTRAINT hold_lines_price_check CHECK ((price >= 1)),
    CONSTRAINT hold_lines_returned_check CHECK ((returned >= 0))
);


--
-- Name: holds; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.holds (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    hold_id text NOT NULL COLLATE pg_catalog."C",
    subject text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL,
    items jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT holds_status_check CHECK ((status = ANY (ARRAY['active'::text, 'captured'::text, 'released'::text, 'expired'::text])))
);


--
-- Name: journal_months; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.journal_months (
    month date NOT NULL
);


--
-- Name: limits; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.limits (
    rule text NOT NULL COLLATE pg_catalog."C",
    spec jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: meters; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.meters (
    meter text NOT NULL COLLATE pg_catalog."C",
    unit text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    denial_replay boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


--
-- Name: periods; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.periods (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    period_start timestamp with time zone NOT NULL,
    period_end timestamp with time zone NOT NULL,
    plan text NOT NULL COLLATE pg_catalog."C",
    plan_version integer NOT NULL,
    opening bigint NOT NULL,
    granted bigint NOT NULL,
    refunded bigint NOT NULL,
    used bigint NOT NULL,
    expired bigint NOT NULL,
    adjusted bigint NOT NULL,
    overage bigint NOT NULL,
    held bigint NOT NULL,
    closing bigint NOT NULL,
    last_seq bigint NOT NULL,
    closed_at timestamp with time zone NOT NULL,
    idle bigint DEFAULT 0 NOT NULL,
    terms_at timestamp with time zone,
    rolled_over bigint DEFAULT 0 NOT NULL,
    rollover bigint DEFAULT 0 NOT NULL,
    owing bigint DEFAULT 0 NOT NULL,
    CONSTRAINT periods_foot CHECK (((((((opening + granted) + refunded) - used) - expired) + adjusted) = closing))
);


--
-- Name: plan_allowances; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.plan_allowances (
    plan text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    meter text NOT NULL COLLATE pg_catalog."C",
    ordinal integer NOT NULL,
    amount bigint NOT NULL,
    every text NOT NULL,
    anchor text NOT NULL,
    rollover_min bigint,
    rollover_max bigint,
    overage_policy text,
    overage_cap bigint,
    overage_at_period_end text,
    overflow_meter text COLLATE pg_catalog."C",
    overflow_price bigint,
    per_subject bigint,
    expires_in_days integer,
    CONSTRAINT plan_allowances_amount_check CHECK (((amount >= 0) AND (amount <= '9007199254740991'::bigint))),
    CONSTRAINT plan_allowances_anchor_check CHECK ((anchor = ANY (ARRAY['calendar'::text, 'tenant'::text]))),
    CONSTRAINT plan_allowances_check CHECK (((expires_in_days IS NULL) OR ((expires_in_days >= 1) AND (every = 'once'::text)))),
    CONSTRAINT plan_allowances_every_check CHECK ((every = ANY (ARRAY['hour'::text, 'day'::text, 'week'::text, 'month'::text, 'year'::text, 'once'::text]))),
    CONSTRAINT plan_allowances_overage_at_period_end_check CHECK ((overage_at_period_end = ANY (ARRAY['forgive'::text, 'preserve'::text]))),
    CONSTRAINT plan_allowances_overage_cap_check CHECK ((overage_cap >= 0)),
    CONSTRAINT plan_allowances_overage_policy_check CHECK ((overage_policy = ANY (ARRAY['deny'::text, 'allow'::text]))),
    CONSTRAINT plan_allowances_overflow_price_check CHECK ((overflow_price >= 1)),
    CONSTRAINT plan_allowances_per_subject_check CHECK ((per_subject >= 0)),
    CONSTRAINT plan_allowances_rollover_max_check CHECK ((rollover_max >= 0)),
    CONSTRAINT plan_allowances_rollover_min_check CHECK ((rollover_min >= 0))
);


--
-- Name: plans; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.plans (
    plan text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    limits jsonb DEFAULT '[]'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT plans_version_check CHECK ((version >= 1))
);


--
-- Name: refunds; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.refunds (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    operation_id text NOT NULL COLLATE pg_catalog."C",
    line integer NOT NULL,
    refunded bigint NOT NULL,
    month date NOT NULL,
    CONSTRAINT refunds_refunded_check CHECK ((refunded >= 1))
);


--
-- Name: rolls; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rolls (
    roll_id text NOT NULL COLLATE pg_catalog."C",
    as_of timestamp with time zone NOT NULL,
    status text NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    processed bigint DEFAULT 0 NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    heartbeat_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    set_aside bigint DEFAULT 0 NOT NULL,
    CONSTRAINT rolls_status_check CHECK ((status = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text])))
);


--
-- Name: rollups; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rollups (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    operations bigint NOT NULL,
    kinds text[] NOT NULL,
    sources text[] NOT NULL,
    amounts numeric[] NOT NULL,
    counts bigint[] NOT NULL,
    CONSTRAINT rollups_parallel CHECK (((cardinality(kinds) = cardinality(sources)) AND (cardinality(kinds) = cardinality(amounts)) AND (cardinality(kinds) = cardinality(counts)))),
    CONSTRAINT rollups_seq_check CHECK ((seq > 0))
);


--
-- Name: sealed_heads; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sealed_heads (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    meter text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL COLLATE pg_catalog."C",
    day date NOT NULL,
    chain bytea NOT NULL,
    CONSTRAINT sealed_heads_chain_check CHECK ((octet_length(chain) = 48))
);


--
-- Name: seals; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.seals (
    "position" bigint NOT NULL,
    day date NOT NULL,
    heads bigint NOT NULL,
    root bytea NOT NULL,
    checkpoint text NOT NULL,
    sealed_at timestamp with time zone NOT NULL,
    CONSTRAINT seals_heads_check CHECK ((heads >= 0)),
    CONSTRAINT seals_position_check CHECK (("position" >= 0)),
    CONSTRAINT seals_root_check CHECK ((octet_length(root) = 32))
);


--
-- Name: tenant_terms; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tenant_terms (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    effective_at timestamp with time zone NOT NULL,
    plan text NOT NULL COLLATE pg_catalog."C",
    anchor timestamp with time zone NOT NULL,
    timezone text NOT NULL,
    initial boolean DEFAULT false NOT NULL,
    immediate boolean DEFAULT false NOT NULL,
    prorate boolean DEFAULT false NOT NULL,
    overrides jsonb DEFAULT '{}'::jsonb NOT NULL,
    reason text,
    usage text DEFAULT 'carry'::text NOT NULL,
    CONSTRAINT tenant_terms_usage_check CHECK ((usage = ANY (ARRAY['carry'::text, 'reset'::text])))
);


--
-- Name: tenants; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tenants (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    plan text NOT NULL COLLATE pg_catalog."C",
    anchor timestamp with time zone NOT NULL,
    timezone text DEFAULT 'UTC'::text NOT NULL,
    status text DEFAULT 'active'::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    overrides jsonb DEFAULT '{}'::jsonb NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT tenants_status_check CHECK ((status = ANY (ARRAY['active'::text, 'suspended'::text])))
);


--
-- Name: verifications; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.verifications (
    verification_id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL,
    report jsonb DEFAULT '{}'::jsonb NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    heartbeat_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    CONSTRAINT verifications_status_check CHECK ((status = ANY (ARRAY['running'::text, 'clean'::text, 'drift'::text, 'failed'::text])))
);


--
-- Name: entries_2026_08; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2026_08 FOR VALUES FROM ('2026-08-01') TO ('2026-09-01');


--
-- Name: entries_2026_09; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2026_09 FOR VALUES FROM ('2026-09-01') TO ('2026-10-01');


--
-- Name: entries_2026_10; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2026_10 FOR VALUES FROM ('2026-10-01') TO ('2026-11-01');


--
-- Name: entries_2026_11; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2026_11 FOR VALUES FROM ('2026-11-01') TO ('2026-12-01');


--
-- Name: entries_2026_12; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2026_12 FOR VALUES FROM ('2026-12-01') TO ('2027-01-01');


--
-- Name: entries_2027_01; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_01 FOR VALUES FROM ('2027-01-01') TO ('2027-02-01');


--
-- Name: entries_2027_02; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_02 FOR VALUES FROM ('2027-02-01') TO ('2027-03-01');


--
-- Name: entries_2027_03; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_03 FOR VALUES FROM ('2027-03-01') TO ('2027-04-01');


--
-- Name: entries_2027_04; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_04 FOR VALUES FROM ('2027-04-01') TO ('2027-05-01');


--
-- Name: entries_2027_05; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_05 FOR VALUES FROM ('2027-05-01') TO ('2027-06-01');


--
-- Name: entries_2027_06; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_06 FOR VALUES FROM ('2027-06-01') TO ('2027-07-01');


--
-- Name: entries_2027_07; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_07 FOR VALUES FROM ('2027-07-01') TO ('2027-08-01');


--
-- Name: entries_2027_08; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_08 FOR VALUES FROM ('2027-08-01') TO ('2027-09-01');


--
-- Name: entries_2027_09; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_09 FOR VALUES FROM ('2027-09-01') TO ('2027-10-01');


--
-- Name: entries_2027_10; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_10 FOR VALUES FROM ('2027-10-01') TO ('2027-11-01');


--
-- Name: entries_2027_11; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries ATTACH PARTITION public.entries_2027_11 FOR VALUES FROM ('2027-11-01') TO ('2027-12-01');


--
-- Data for Name: archives; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: balances; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.balances VALUES ('kept', 'hourly', '', 2, 'kept', 1, 10, true, '2026-09-23 21:00:00+00', '2026-09-23 22:00:00+00', 0, 10, 0, 4, 0, 0, 0, 0, 0, 0, 0, 'allowance:2026-09-23T21:00:00Z', 'allowance', 6, '2026-09-23 22:00:00+00', '2026-09-23 21:22:24.0805+00', 0, 0, '1970-01-01 00:00:00+00', '2026-09-23 22:00:00+00', '\x00000000000000010000000000000002b96ecd731e692a3b286cd1cdc4850595b4daa68b093e4f61b580947d5e780b53');
INSERT INTO public.balances VALUES ('kept', 'credits', '', 6, 'kept', 1, 0, false, '2026-09-23 21:22:24.051558+00', '9999-12-31 23:59:59+00', 0, 100, 5, 42, 0, 0, 0, 0, 0, 0, 0, 'paid', 'topup', 63, '9999-12-31 23:59:59+00', '2026-11-23 21:22:24.229896+00', 0, 0, '1970-01-01 00:00:00+00', '9999-12-31 23:59:59+00', '\x00000000000000010000000000000006c63ee9a622ae5647e65478f1c6d52577fd2b85280c425c376433c7984eb124e9');


--
-- Data for Name: blocks; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: chain_start; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.chain_start VALUES (true, '-infinity');


--
-- Data for Name: checkpoints; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: database_identity; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.database_identity VALUES (true, 'f34a7caf-c4dd-49e2-97ce-09acf81a90b9');


--
-- Data for Name: entries_2026_08; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2026_09; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.entries_2026_09 VALUES ('kept', 'paid', 1, '2026-09-01', 1, 'grant', 'credits', '', '2026-09-23 21:22:24.051558+00', 'paid', 'topup', 100, 100, 0, NULL, '\xfeefa7bc9ad24797242b141fc4206b03', '2026-09-23 21:22:24.064398+00', NULL, NULL, '{"limit": 100, "priority": 100, "expires_at": "9999-12-31T23:59:59Z", "effective_at": "2026-09-23T21:22:24.064398Z"}', NULL);
INSERT INTO public.entries_2026_09 VALUES ('kept', 'old', 1, '2026-09-01', 2, 'debit', 'credits', '', '2026-09-23 21:22:24.051558+00', 'paid', 'topup', 20, 80, 0, 20, '\x330901fe375842777331694968170d44', '2026-09-23 21:22:24.076072+00', NULL, NULL, NULL, NULL);
INSERT INTO public.entries_2026_09 VALUES ('kept', 'hourly', 1, '2026-09-01', 2, 'debit', 'hourly', '', '2026-09-23 21:00:00+00', 'allowance:2026-09-23T21:00:00Z', 'allowance', 4, 6, 0, 4, '\x53c6d729ddbbead5c01c5d47b15bf5cf', '2026-09-23 21:22:24.0805+00', NULL, NULL, NULL, NULL);
INSERT INTO public.entries_2026_09 VALUES ('kept', '§allowance/hourly//2026-09-23T21:00:00Z', 1, '2026-09-01', 1, 'grant', 'hourly', '', '2026-09-23 21:00:00+00', 'allowance:2026-09-23T21:00:00Z', 'allowance', 10, 10, 0, NULL, NULL, '2026-09-23 21:22:24.0805+00', '2026-09-23 21:22:24.051558+00', NULL, NULL, NULL);


--
-- Data for Name: entries_2026_10; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2026_11; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.entries_2026_11 VALUES ('kept', 'new', 1, '2026-11-01', 3, 'debit', 'credits', '', '2026-09-23 21:22:24.051558+00', 'paid', 'topup', 15, 65, 0, 15, '\x9f8518fcac11b52773498facec99bb96', '2026-11-23 21:22:24.207759+00', NULL, NULL, NULL, NULL);
INSERT INTO public.entries_2026_11 VALUES ('kept', 'refund', 1, '2026-11-01', 4, 'refund', 'credits', '', '2026-09-23 21:22:24.051558+00', 'paid', 'topup', 5, 70, 0, NULL, '\xd574493f412def6b69939f6afad9b2fa', '2026-11-23 21:22:24.220247+00', NULL, NULL, '{"answer": {"as_of": "2026-11-23T21:22:24.220247Z", "items": [{"draws": [{"Grant": "paid", "Meter": "credits", "Amount": 5, "Source": "topup"}], "meter": "credits", "refunded": 5, "forfeited": 0, "remaining": 70}], "tenant": "kept", "refund_of": "new", "operation_id": "refund", "refund_of_at": "2026-11-23T21:22:24.207759Z"}, "refund_of": "new", "refund_line": 1, "refund_month": "2026-11"}', NULL);
INSERT INTO public.entries_2026_11 VALUES ('kept', 'hold', 1, '2026-11-01', 5, 'hold', 'credits', '', '2026-09-23 21:22:24.051558+00', 'paid', 'topup', 7, 63, 0, 7, '\xd84c9c91e83f175c0f22399e5a04e54f', '2026-11-23 21:22:24.225366+00', NULL, NULL, '{"hold": "hold", "answer": {"as_of": "2026-11-23T21:22:24.225366Z", "items": [{"held": 7, "draws": [{"Grant": "paid", "Meter": "credits", "Amount": 7, "Source": "topup"}], "meter": "credits", "amount": 7, "captured": 0, "remaining": 63}], "status": "active", "tenant": "kept", "hold_id": "hold", "expires_at": "2026-11-23T22:22:24.225366Z", "operation_id": "hold"}}', NULL);
INSERT INTO public.entries_2026_11 VALUES ('kept', 'capture', 1, '2026-11-01', 6, 'capture', 'credits', '', '2026-09-23 21:22:24.051558+00', 'paid', 'topup', 7, 63, 0, NULL, '\xc405fbfb52fb5331983a9e8341b55f76', '2026-11-23 21:22:24.229896+00', NULL, NULL, '{"hold": "hold", "answer": {"as_of": "2026-11-23T21:22:24.229896Z", "items": [{"held": 0, "draws": [{"Grant": "paid", "Meter": "credits", "Amount": 7, "Source": "topup"}], "meter": "credits", "amount": 7, "captured": 7, "remaining": 63}], "status": "captured", "tenant": "kept", "hold_id": "hold", "expires_at": "2026-11-23T22:22:24.225366Z", "operation_id": "capture"}}', NULL);


--
-- Data for Name: entries_2026_12; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_01; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_02; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_03; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_04; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_05; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_06; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_07; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_08; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_09; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_10; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: entries_2027_11; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: full_pass; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: goose_db_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.goose_db_version VALUES (1, 0, true, '2026-11-23 21:22:23.263441');
INSERT INTO public.goose_db_version VALUES (2, 1, true, '2026-11-23 21:22:23.281019');
INSERT INTO public.goose_db_version VALUES (3, 2, true, '2026-11-23 21:22:23.331165');
INSERT INTO public.goose_db_version VALUES (4, 3, true, '2026-11-23 21:22:23.387806');
INSERT INTO public.goose_db_version VALUES (5, 4, true, '2026-11-23 21:22:23.421669');
INSERT INTO public.goose_db_version VALUES (6, 5, true, '2026-11-23 21:22:23.432203');
INSERT INTO public.goose_db_version VALUES (7, 6, true, '2026-11-23 21:22:23.434678');
INSERT INTO public.goose_db_version VALUES (8, 7, true, '2026-11-23 21:22:23.434859');
INSERT INTO public.goose_db_version VALUES (9, 8, true, '2026-11-23 21:22:23.450865');
INSERT INTO public.goose_db_version VALUES (10, 9, true, '2026-11-23 21:22:23.688121');
INSERT INTO public.goose_db_version VALUES (11, 10, true, '2026-11-23 21:22:23.688787');


--
-- Data for Name: grants; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.grants VALUES ('kept', 'hourly', '', 'allowance:2026-09-23T21:00:00Z', 'allowance', 10, 10, '2026-09-23 21:00:00+00', '2026-09-23 22:00:00+00', NULL, NULL, '§allowance/hourly//2026-09-23T21:00:00Z', '2026-09-23 21:22:24.0805+00', 6, 0, 'active');
INSERT INTO public.grants VALUES ('kept', 'credits', '', 'paid', 'topup', 100, 100, '2026-09-23 21:22:24.064398+00', '9999-12-31 23:59:59+00', NULL, NULL, 'paid', '2026-09-23 21:22:24.064398+00', 63, 0, 'active');


--
-- Data for Name: hold_lines; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.hold_lines VALUES ('kept', 'hold', 1, 0, 'credits', '', 'paid', 'topup', 1, 7, 7, 0, '2026-11-23 22:22:24.225366+00');


--
-- Data for Name: holds; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.holds VALUES ('kept', 'hold', '', 'captured', '[{"held": 0, "draws": null, "meter": "credits", "amount": 7, "captured": 7, "remaining": 0}]', '2026-11-23 21:22:24.225366+00', '2026-11-23 22:22:24.225366+00');


--
-- Data for Name: journal_months; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.journal_months VALUES ('2026-09-01');
INSERT INTO public.journal_months VALUES ('2026-11-01');


--
-- Data for Name: limits; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: meters; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.meters VALUES ('credits', 'credit', '', false, '2026-09-23 21:22:24.03666+00', '2026-09-23 21:22:24.03666+00');
INSERT INTO public.meters VALUES ('hourly', 'credit', '', false, '2026-09-23 21:22:24.044054+00', '2026-09-23 21:22:24.044054+00');


--
-- Data for Name: periods; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: plan_allowances; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.plan_allowances VALUES ('kept', 1, 'credits', 0, 0, 'once', 'tenant', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.plan_allowances VALUES ('kept', 1, 'hourly', 1, 10, 'hour', 'calendar', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: plans; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.plans VALUES ('kept', 1, '[]', '2026-09-23 21:22:24.046312+00');


--
-- Data for Name: refunds; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.refunds VALUES ('kept', 'new', 1, 5, '2026-11-01');


--
-- Data for Name: rolls; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: rollups; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: sealed_heads; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: seals; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: tenant_terms; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.tenant_terms VALUES ('kept', '2026-09-23 21:22:24.051558+00', 'kept', '2026-09-23 21:22:24.051558+00', 'UTC', true, false, false, '{}', NULL, 'carry');


--
-- Data for Name: tenants; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.tenants VALUES ('kept', 'kept', '2026-09-23 21:22:24.051558+00', 'UTC', 'active', '{}', '{}', 1, '2026-09-23 21:22:24.051558+00', '2026-09-23 21:22:24.051558+00');


--
-- Data for Name: verifications; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Name: goose_db_version_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.goose_db_version_id_seq', 11, true);


--
-- Name: archives archives_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.archives
    ADD CONSTRAINT archives_pkey PRIMARY KEY (month);


--
-- Name: balances balances_carried_not_negative; Type: CHECK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE public.balances
    ADD CONSTRAINT balances_carried_not_negative CHECK (((carried >= 0) AND (span_used >= 0))) NOT VALID;


--
-- Name: balances balances_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.balances
    ADD CONSTRAINT balances_pkey PRIMARY KEY (tenant_id, meter, subject);


--
-- Name: blocks blocks_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.blocks
    ADD CONSTRAINT blocks_pkey PRIMARY KEY (kind, tenant_id, value);


--
-- Name: chain_start chain_start_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.chain_start
    ADD CONSTRAINT chain_start_pkey PRIMARY KEY (only_row);


--
-- Name: checkpoints checkpoints_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (tenant_id, meter, subject, seq);


--
-- Name: database_identity database_identity_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.database_identity
    ADD CONSTRAINT database_identity_pkey PRIMARY KEY (only_row);


--
-- Name: entries entries_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2026_08 entries_2026_08_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2026_08
    ADD CONSTRAINT entries_2026_08_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2026_09 entries_2026_09_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2026_09
    ADD CONSTRAINT entries_2026_09_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2026_10 entries_2026_10_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2026_10
    ADD CONSTRAINT entries_2026_10_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2026_11 entries_2026_11_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2026_11
    ADD CONSTRAINT entries_2026_11_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2026_12 entries_2026_12_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2026_12
    ADD CONSTRAINT entries_2026_12_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_01 entries_2027_01_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_01
    ADD CONSTRAINT entries_2027_01_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_02 entries_2027_02_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_02
    ADD CONSTRAINT entries_2027_02_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_03 entries_2027_03_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_03
    ADD CONSTRAINT entries_2027_03_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_04 entries_2027_04_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_04
    ADD CONSTRAINT entries_2027_04_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_05 entries_2027_05_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_05
    ADD CONSTRAINT entries_2027_05_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_06 entries_2027_06_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_06
    ADD CONSTRAINT entries_2027_06_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_07 entries_2027_07_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_07
    ADD CONSTRAINT entries_2027_07_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_08 entries_2027_08_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_08
    ADD CONSTRAINT entries_2027_08_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_09 entries_2027_09_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_09
    ADD CONSTRAINT entries_2027_09_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_10 entries_2027_10_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_10
    ADD CONSTRAINT entries_2027_10_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: entries_2027_11 entries_2027_11_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.entries_2027_11
    ADD CONSTRAINT entries_2027_11_pkey PRIMARY KEY (tenant_id, operation_id, line, month);


--
-- Name: full_pass full_pass_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.full_pass
    ADD CONSTRAINT full_pass_pkey PRIMARY KEY (only_row);


--
-- Name: goose_db_version goose_db_version_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.goose_db_version
    ADD CONSTRAINT goose_db_version_pkey PRIMARY KEY (id);


--
-- Name: grants grants_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.grants
    ADD CONSTRAINT grants_pkey PRIMARY KEY (tenant_id, meter, subject, grant_id);


--
-- Name: hold_lines hold_lines_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.hold_lines
    ADD CONSTRAINT hold_lines_pkey PRIMARY KEY (tenant_id, hold_id, line);


--
-- Name: holds holds_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.holds
    ADD CONSTRAINT holds_pkey PRIMARY KEY (tenant_id, hold_id);


--
-- Name: journal_months journal_months_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.journal_months
    ADD CONSTRAINT journal_months_pkey PRIMARY KEY (month);


--
-- Name: limits limits_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.limits
    ADD CONSTRAINT limits_pkey PRIMARY KEY (rule);


--
-- Name: meters meters_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.meters
    ADD CONSTRAINT meters_pkey PRIMARY KEY (meter);


--
-- Name: periods periods_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.periods
    ADD CONSTRAINT periods_pkey PRIMARY KEY (tenant_id, meter, subject, period_start);


--
-- Name: plan_allowances plan_allowances_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.plan_allowances
    ADD CONSTRAINT plan_allowances_pkey PRIMARY KEY (plan, version, meter);


--
-- Name: plans plans_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.plans
    ADD CONSTRAINT plans_pkey PRIMARY KEY (plan, version);


--
-- Name: refunds refunds_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.refunds
    ADD CONSTRAINT refunds_pkey PRIMARY KEY (tenant_id, operation_id, month, line);


--
-- Name: rolls rolls_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rolls
    ADD CONSTRAINT rolls_pkey PRIMARY KEY (roll_id);


--
-- Name: rollups rollups_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rollups
    ADD CONSTRAINT rollups_pkey PRIMARY KEY (tenant_id, meter, subject, seq);


--
-- Name: sealed_heads sealed_heads_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sealed_heads
    ADD CONSTRAINT sealed_heads_pkey PRIMARY KEY (tenant_id, meter, subject, day);


--
-- Name: seals seals_day_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.seals
    ADD CONSTRAINT seals_day_key UNIQUE (day);


--
-- Name: seals seals_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.seals
    ADD CONSTRAINT seals_pkey PRIMARY KEY ("position");


--
-- Name: tenant_terms tenant_terms_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tenant_terms
    ADD CONSTRAINT tenant_terms_pkey PRIMARY KEY (tenant_id, effective_at);


--
-- Name: tenants tenants_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id);


--
-- Name: verifications verifications_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.verifications
    ADD CONSTRAINT verifications_pkey PRIMARY KEY (verification_id);


--
-- Name: balances_to_roll; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX balances_to_roll ON public.balances USING btree (COALESCE(roll_at, next_event_at)) WHERE (COALESCE(roll_at, next_event_at) < '9999-12-31 00:00:00+00'::timestamp with time zone);


--
-- Name: blocks_expiry; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX blocks_expiry ON public.blocks USING btree (expires_at) WHERE (expires_at IS NOT NULL);


--
-- Name: entries_rare; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_rare ON ONLY public.entries USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2026_08_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_08_tenant_id_kind_meter_subject_seq_idx ON public.entries_2026_08 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_history; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_history ON ONLY public.entries USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2026_08_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_08_tenant_id_meter_subject_seq_idx ON public.entries_2026_08 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_named; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_named ON ONLY public.entries USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2026_08_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_08_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2026_08 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2026_09_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_09_tenant_id_kind_meter_subject_seq_idx ON public.entries_2026_09 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2026_09_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_09_tenant_id_meter_subject_seq_idx ON public.entries_2026_09 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2026_09_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_09_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2026_09 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2026_10_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_10_tenant_id_kind_meter_subject_seq_idx ON public.entries_2026_10 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2026_10_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_10_tenant_id_meter_subject_seq_idx ON public.entries_2026_10 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2026_10_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_10_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2026_10 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2026_11_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_11_tenant_id_kind_meter_subject_seq_idx ON public.entries_2026_11 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2026_11_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_11_tenant_id_meter_subject_seq_idx ON public.entries_2026_11 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2026_11_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_11_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2026_11 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2026_12_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_12_tenant_id_kind_meter_subject_seq_idx ON public.entries_2026_12 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2026_12_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_12_tenant_id_meter_subject_seq_idx ON public.entries_2026_12 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2026_12_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2026_12_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2026_12 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_01_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_01_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_01 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_01_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_01_tenant_id_meter_subject_seq_idx ON public.entries_2027_01 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_01_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_01_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_01 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_02_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_02_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_02 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_02_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_02_tenant_id_meter_subject_seq_idx ON public.entries_2027_02 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_02_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_02_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_02 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_03_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_03_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_03 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_03_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_03_tenant_id_meter_subject_seq_idx ON public.entries_2027_03 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_03_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_03_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_03 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_04_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_04_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_04 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_04_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_04_tenant_id_meter_subject_seq_idx ON public.entries_2027_04 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_04_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_04_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_04 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_05_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_05_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_05 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_05_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_05_tenant_id_meter_subject_seq_idx ON public.entries_2027_05 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_05_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_05_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_05 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_06_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_06_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_06 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_06_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_06_tenant_id_meter_subject_seq_idx ON public.entries_2027_06 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_06_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_06_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_06 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_07_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_07_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_07 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_07_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_07_tenant_id_meter_subject_seq_idx ON public.entries_2027_07 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_07_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_07_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_07 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_08_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_08_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_08 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_08_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_08_tenant_id_meter_subject_seq_idx ON public.entries_2027_08 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_08_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_08_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_08 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_09_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_09_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_09 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_09_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_09_tenant_id_meter_subject_seq_idx ON public.entries_2027_09 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_09_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_09_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_09 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_10_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_10_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_10 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_10_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_10_tenant_id_meter_subject_seq_idx ON public.entries_2027_10 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_10_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_10_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_10 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: entries_2027_11_tenant_id_kind_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_11_tenant_id_kind_meter_subject_seq_idx ON public.entries_2027_11 USING btree (tenant_id, kind, meter, subject, seq) WHERE (kind <> 'debit'::text);


--
-- Name: entries_2027_11_tenant_id_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_11_tenant_id_meter_subject_seq_idx ON public.entries_2027_11 USING btree (tenant_id, meter, subject, seq) WHERE (seq > 0);


--
-- Name: entries_2027_11_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX entries_2027_11_tenant_id_op_subject_meter_subject_seq_idx ON public.entries_2027_11 USING btree (tenant_id, op_subject, meter, subject, seq) WHERE (op_subject IS NOT NULL);


--
-- Name: grants_by_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX grants_by_id ON public.grants USING btree (tenant_id, grant_id);


--
-- Name: grants_open; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX grants_open ON public.grants USING btree (tenant_id, meter, subject) WHERE ((status = ANY (ARRAY['pending'::text, 'active'::text])) OR (held > 0));


--
-- Name: hold_lines_open; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX hold_lines_open ON public.hold_lines USING btree (tenant_id, meter, subject) WHERE ((captured + returned) < amount);


--
-- Name: plans_changed; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX plans_changed ON public.plans USING btree (created_at) WHERE (version > 1);


--
-- Name: rollups_by_time; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX rollups_by_time ON public.rollups USING btree (tenant_id, meter, subject, created_at, seq);


--
-- Name: sealed_heads_of_day; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sealed_heads_of_day ON public.sealed_heads USING btree (day);


--
-- Name: tenant_terms_changed; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX tenant_terms_changed ON public.tenant_terms USING btree (effective_at) WHERE (NOT initial);


--
-- Name: tenant_terms_immediate; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX tenant_terms_immediate ON public.tenant_terms USING btree (tenant_id, effective_at) WHERE immediate;


--
-- Name: entries_2026_08_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2026_08_pkey;


--
-- Name: entries_2026_08_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2026_08_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2026_08_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2026_08_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2026_08_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2026_08_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2026_09_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2026_09_pkey;


--
-- Name: entries_2026_09_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2026_09_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2026_09_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2026_09_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2026_09_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2026_09_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2026_10_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2026_10_pkey;


--
-- Name: entries_2026_10_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2026_10_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2026_10_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2026_10_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2026_10_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2026_10_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2026_11_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2026_11_pkey;


--
-- Name: entries_2026_11_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2026_11_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2026_11_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2026_11_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2026_11_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2026_11_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2026_12_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2026_12_pkey;


--
-- Name: entries_2026_12_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2026_12_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2026_12_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2026_12_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2026_12_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2026_12_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_01_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_01_pkey;


--
-- Name: entries_2027_01_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_01_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_01_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_01_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_01_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_01_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_02_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_02_pkey;


--
-- Name: entries_2027_02_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_02_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_02_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_02_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_02_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_02_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_03_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_03_pkey;


--
-- Name: entries_2027_03_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_03_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_03_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_03_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_03_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_03_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_04_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_04_pkey;


--
-- Name: entries_2027_04_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_04_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_04_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_04_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_04_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_04_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_05_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_05_pkey;


--
-- Name: entries_2027_05_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_05_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_05_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_05_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_05_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_05_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_06_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_06_pkey;


--
-- Name: entries_2027_06_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_06_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_06_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_06_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_06_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_06_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_07_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_07_pkey;


--
-- Name: entries_2027_07_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_07_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_07_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_07_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_07_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_07_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_08_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_08_pkey;


--
-- Name: entries_2027_08_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_08_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_08_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_08_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_08_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_08_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_09_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_09_pkey;


--
-- Name: entries_2027_09_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_09_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_09_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_09_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_09_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_09_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_10_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_10_pkey;


--
-- Name: entries_2027_10_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_10_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_10_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_10_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_10_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_10_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: entries_2027_11_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_pkey ATTACH PARTITION public.entries_2027_11_pkey;


--
-- Name: entries_2027_11_tenant_id_kind_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_rare ATTACH PARTITION public.entries_2027_11_tenant_id_kind_meter_subject_seq_idx;


--
-- Name: entries_2027_11_tenant_id_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_history ATTACH PARTITION public.entries_2027_11_tenant_id_meter_subject_seq_idx;


--
-- Name: entries_2027_11_tenant_id_op_subject_meter_subject_seq_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.entries_named ATTACH PARTITION public.entries_2027_11_tenant_id_op_subject_meter_subject_seq_idx;


--
-- Name: plan_allowances plan_allowances_meter_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.plan_allowances
    ADD CONSTRAINT plan_allowances_meter_fkey FOREIGN KEY (meter) REFERENCES public.meters(meter);


--
-- Name: plan_allowances plan_allowances_overflow_meter_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.plan_allowances
    ADD CONSTRAINT plan_allowances_overflow_meter_fkey FOREIGN KEY (overflow_meter) REFERENCES public.meters(meter);


--
-- Name: plan_allowances plan_allowances_plan_version_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.plan_allowances
    ADD CONSTRAINT plan_allowances_plan_version_fkey FOREIGN KEY (plan, version) REFERENCES public.plans(plan, version);


--
-- Name: tenant_terms tenant_terms_tenant_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tenant_terms
    ADD CONSTRAINT tenant_terms_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES public.tenants(tenant_id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--


