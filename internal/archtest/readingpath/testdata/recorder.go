package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// asRecorder is the variable that makes the program record which code one request runs. Its value is the directory of the
// records. internal/archtest/readingpath adds this file to a copy of the main package, builds it with coverage counters and
// starts it.
const asRecorder = "QUOTASVC_RECORD"

const recordKey = "0123456789abcdef0123456789abcdef"

func init() {
	dir := os.Getenv(asRecorder)
	if dir == "" {
		return
	}
	if err := record(dir); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// recordCatalog is the catalogue for the recorded requests: one meter with an allowance and one limit. Neither denies, and a token comes
// back after more than the record's time, so that Redis has the bucket.
const recordCatalog = `
meters:
  - {meter: api_calls, unit: call}
plans:
  - plan: recorded
    allowances:
      - {meter: api_calls, amount: 1000000, every: month, anchor: calendar}
    limits:
      - {rule: per-tenant, per: [tenant], kind: token_bucket, rate: 1000/day}
tenants:
  - {tenant: acme-0, plan: recorded}
  - {tenant: acme-1, plan: recorded}
  - {tenant: acme-2, plan: recorded}
  - {tenant: acme-3, plan: recorded}
`

const (
	// recordWarmUp is the number of requests of each kind before the recorded one: caches, statements and buckets exist then.
	recordWarmUp = 20

	// recordSettle is the pause after a request in which work off the answer's path ends, such as publishing a balance.
	recordSettle = 300 * time.Millisecond

	// recordTimes is how often each request is recorded, each time for a tenant of its own: the background does not run beside all of them.
	recordTimes = 3

	// recordIdle is the length of the idle record: several heartbeats.
	recordIdle = 3 * time.Second
)

// record serves in this process and writes coverage counters of an idle service, of debits and of checks.
func record(dir string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	cfg := serviceConfig{
		Listen: "127.0.0.1:0", OpsListen: "127.0.0.1:0", AdminKey: recordKey, StopTimeout: 8 * time.Second,
		Replicas: 1, LedgerLanes: 2, CheckReads: 8, Readers: 8, TenantsInMemory: 50_000, CacheFresh: time.Hour, // no refresh in the middle of a record
	}
	cfg.DatabaseURL, cfg.RedisURL = secret(os.Getenv("QUOTASVC_DATABASE_URL")), secret(os.Getenv("QUOTASVC_REDIS_URL"))
	cfg.level, cfg.lines = new(slog.LevelVar), newFlood(log.Handler())
	lst, err := listen(ctx, &cfg)
	if err != nil {
		return err
	}
	defer lst.close()
	before := func(ctx context.Context) error {
		if err := migrateUp(ctx, string(cfg.DatabaseURL), log); err != nil {
			return err
		}
		_, err := applyText(ctx, string(cfg.DatabaseURL), cfg.clock(log), []byte(recordCatalog), false, false)
		return err
	}
	options, err := redis.ParseURL(string(cfg.RedisURL))
	if err != nil {
		return err
	}
	r := &recorder{dir: dir, redis: redis.NewClient(options)}
	defer r.redis.Close()
	serving, stop := context.WithCancel(ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- run(serving, &cfg, lst, log, before, func(a addresses) { r.api = a.api; close(ready) })
	}()
	select {
	case <-ready:
	case err := <-ended:
		stop()
		return err
	}
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	for range recordWarmUp {
		for i := range recordTimes + 1 {
			if err := errors.Join(r.consume(ctx, i), r.debit(ctx, i), r.check(ctx, i)); err != nil {
				return err
			}
		}
	}
	time.Sleep(recordSettle)
	err = r.window("idle", func() error { time.Sleep(recordIdle); return nil })
	for i := range recordTimes {
		err = errors.Join(err,
			r.window(fmt.Sprintf("debit-%d", i), func() error { return r.debit(ctx, i) }),
			r.check(ctx, recordTimes), // the first check after a pause also starts Redis's announcements
			r.touch(ctx, i),
			r.window(fmt.Sprintf("check-%d", i), func() error { return r.check(ctx, i) }),
		)
	}
	return err
}

type recorder struct {
	dir, api string
	redis    *redis.Client
	requests int
}

// window writes the counters of what runs during do and shortly after it.
func (r *recorder) window(name string, do func() error) error {
	dir := filepath.Join(r.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := errors.Join(coverage.WriteMetaDir(dir), coverage.ClearCounters()); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	time.Sleep(recordSettle)
	return coverage.WriteCountersDir(dir)
}

func (r *recorder) debit(ctx context.Context, tenant int) error {
	return r.post(ctx, "/v1/debits", tenant)
}

func (r *recorder) check(ctx context.Context, tenant int) error {
	return r.post(ctx, "/v1/check", tenant)
}

func (r *recorder) consume(ctx context.Context, tenant int) error {
	return r.post(ctx, "/v1/consume", tenant)
}

// touch changes what Redis has of a tenant, so that the process has to ask again: a check from memory is a part of one that asks.
func (r *recorder) touch(ctx context.Context, tenant int) error {
	keys, err := r.redis.Keys(ctx, fmt.Sprintf("*{acme-%d}*", tenant)).Result()
	if err == nil && len(keys) < 2 {
		err = fmt.Errorf("redis has only %q of a tenant", keys)
	}
	for _, key := range keys {
		err = errors.Join(err, r.redis.Expire(ctx, key, time.Hour).Err())
	}
	time.Sleep(recordSettle)
	return err
}

func (r *recorder) post(ctx context.Context, path string, tenant int) error {
	body := fmt.Sprintf(`{"tenant":"acme-%d","items":[{"meter":"api_calls","amount":1}]}`, tenant)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.api+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.requests++
	request.Header.Set("Authorization", "Bearer "+recordKey)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", fmt.Sprintf("recorded-%d", r.requests))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("%s: %s: %s", path, answer.Status, text), err)
	}
	return nil
}
