package bench

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

//go:embed seed_in_use.sql
var seedInUseSQL string

// inUseMax is the time limit for the first debits. It ends the run if the service is far too slow.
const inUseMax = 5 * time.Minute

// inUse measures first debits and memory, with a new process of the service. Each of many tenants without a balance
// gets one debit, in batches. Then each of them gets one check.
func (r *runner) inUse(ctx context.Context) error {
	r.say("%d tenants get their first debit in batches, then a check", r.cfg.InUse)
	seed := strings.NewReplacer("$FIRST", fmt.Sprint(r.cfg.Tenants), "$TENANTS", fmt.Sprint(r.cfg.InUse)).Replace(seedInUseSQL)
	if _, err := r.stand.db.Exec(ctx, seed, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	at := r.stand.service
	if err := r.stand.restart(ctx, at); err != nil {
		return err
	}
	further := tenantRange{r.cfg.Tenants, r.cfg.InUse}
	auth := bearer(adminKey)
	debits := newTemplate("/v1/debits/batch", auth, batchBody(r.cfg.Batch), r.cfg.Batch)
	debits.recorded = true
	before := cpuOf(os.Getpid(), at.child.Pid())
	first, err := r.each(ctx, at, debits, min(batchClients, r.cfg.Connections), further)
	if err != nil {
		return fmt.Errorf("first debits: %w", err)
	}
	used := cpuOf(os.Getpid(), at.child.Pid()).Minus(before)
	checks, err := r.each(ctx, at, newTemplate("/v1/check", auth, checkBody(tenantMark, plainRoute), 1), r.cfg.Connections, further)
	if err != nil {
		return fmt.Errorf("checks: %w", err)
	}
	if r.cfg.Profile > 0 {
		file := filepath.Join(r.cfg.Dir, "tenants-in-use-heap.pprof")
		if err := r.stand.store(ctx, at, "heap?gc=1", file); err != nil {
			return err
		}
		r.say("heap of tenants in use: go tool pprof -top -sample_index=inuse_space %s", file)
	}
	r.out.InUse = &report.InUse{
		Tenants: int(first.units), FirstTouch: first.rate(), CPU: used.Per(first.units), Checks: checks.rate(), Errors: first.errors + checks.errors, Memory: peakMemory(at.child.Pid()),
	}
	r.say("first debits %.0f/s, checks %.0f/s", first.rate(), checks.rate())
	return nil
}

// tenantRange is a range of tenants: the number of the first tenant, and the count of tenants.
type tenantRange struct{ first, count int }

// each sends requests from the template t to a site on n connections until each tenant was part of a request. If the
// last tenants do not fill a request, they are omitted.
func (r *runner) each(ctx context.Context, at *site, t *template, n int, tenants tenantRange) (sample, error) {
	requests := uint64(tenants.count / t.debits)
	last := r.seq.Add(requests)
	begin := last - requests + 1
	t.inOrder, t.first = true, tenants.first-int(begin)*t.debits
	clients, err := dial(ctx, at.api, n)
	if err != nil {
		return sample{}, err
	}
	defer closeAll(clients)
	var sent atomic.Uint64
	s, err := closedLoop(ctx, n, inUseMax, func(caller int) (outcome, error) {
		number := begin + sent.Add(1) - 1
		if number > last {
			return outcome{}, errEnough
		}
		status, err := clients[caller].send(t, number, tenants.count)
		return clients[caller].outcome(status, t), err
	})
	if err == nil && s.sent != int64(requests) {
		err = fmt.Errorf("%d of %d requests within %s", s.sent, requests, inUseMax)
	}
	r.note(t, &s)
	return s, err
}

// checksInBatches reports whether the service has the route for many checks in a request. It returns an error if one
// of the checks gets no answer.
func (r *runner) checksInBatches(ctx context.Context) (bool, error) {
	address := "http://" + r.stand.service.api + checkBatchPath
	body := checksBody(tenantID(0), checkBatch)
	status, text, err := ask(ctx, http.MethodPost, address, adminKey, body)
	if err != nil {
		return false, fmt.Errorf("checks in batches: %w", err)
	}
	switch {
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return false, nil
	case status != http.StatusOK || bytes.Contains(text, []byte(`"code"`)):
		return false, fmt.Errorf("checks in batches: %d: %.300s", status, text)
	}
	return true, nil
}
