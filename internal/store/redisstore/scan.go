package redisstore

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// scanPage is the number of keys that Redis examines for one page. That takes about 0.2 ms. During this time Redis
// runs no other command.
const scanPage = 500

// Scan defines which keys of all shards are read, and what is read from them.
type Scan struct {
	// Match is a pattern for SCAN, in which * matches any text. A matching key is read if Keep returns true.
	Match string
	Keep  func(key string) bool
	// Ends says that the values are sorted sets whose scores are times in µs. Without Ends the values are strings.
	Ends bool
	// Visit receives the pages, one at a time. A key may occur more than once.
	Visit func(Page)
}

// Page is a list of keys of one shard, with the values that are stored under these keys.
type Page struct {
	Now    int64    // the server's time before it read the values, in µs
	Keys   []string // without keys that no longer exist or have another type
	Values []string // by key
	Counts []int64  // by key, with Scan.Ends: the number of members whose time is after Now
}

// Walk reads the keys that scan selects. It does not block Redis, and uses no lane and no breaker. Its run time grows
// with the number of keys. complete is false if ctx ended first, or if keys were moving to another shard. Errors
// match ErrAway. Keys that are created or deleted during the walk may be missing.
func (s *Store) Walk(ctx context.Context, scan Scan) (complete bool, err error) {
	complete = true
	if s.cluster == nil {
		err = scan.shard(ctx, s.client, &complete)
	} else {
		var mu sync.Mutex
		visit := scan.Visit
		scan.Visit = func(p Page) {
			mu.Lock()
			defer mu.Unlock()
			visit(p)
		}
		err = s.cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
			all := true
			err := scan.shard(ctx, master, &all)
			mu.Lock()
			defer mu.Unlock()
			complete = complete && all
			return err
		})
	}
	switch {
	case err == nil:
		return complete, nil
	case ctxError(ctx) != nil:
		return false, nil
	default:
		return false, s.translate(ctx, classify(err))
	}
}

// shard walks over the keys of one server. Each round trip reads the values of one page and finds the keys of the
// next page.
func (scan *Scan) shard(ctx context.Context, server redis.Cmdable, complete *bool) error {
	var page Page
	for cursor, first := uint64(0), true; first || cursor > 0 || len(page.Keys) > 0; first = false {
		if err := ctxError(ctx); err != nil {
			return err
		}
		pipe := server.Pipeline()
		values := scan.read(ctx, pipe, page)
		var clock *redis.TimeCmd
		var found *redis.ScanCmd
		if first || cursor > 0 {
			clock, found = pipe.Time(ctx), pipe.Scan(ctx, cursor, scan.Match, scanPage)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		if err := page.collect(values, complete); err != nil {
			return err
		}
		if len(page.Keys) > 0 {
			scan.Visit(page)
		}
		page, cursor = Page{}, 0
		if found == nil {
			continue
		}
		if err := errors.Join(clock.Err(), found.Err()); err != nil {
			return err
		}
		page.Now = clock.Val().UnixMicro()
		var keys []string
		keys, cursor = found.Val()
		for _, key := range keys {
			if scan.Keep(key) {
				page.Keys = append(page.Keys, key)
			}
		}
	}
	return nil
}

// read adds the commands that read the values of a page to a pipeline.
func (scan *Scan) read(ctx context.Context, pipe redis.Pipeliner, p Page) []redis.Cmder {
	commands := make([]redis.Cmder, len(p.Keys))
	for i, key := range p.Keys {
		if scan.Ends {
			commands[i] = pipe.ZCount(ctx, key, "("+strconv.FormatInt(p.Now, 10), "+inf")
		} else {
			commands[i] = pipe.Get(ctx, key)
		}
	}
	return commands
}

// collect puts the replies of the reads into the page.
func (p *Page) collect(replies []redis.Cmder, complete *bool) error {
	keys := p.Keys[:0]
	for i, reply := range replies {
		err := reply.Err()
		switch {
		case err == nil:
		case errors.Is(err, redis.Nil), redis.HasErrorPrefix(err, "WRONGTYPE"):
			continue
		case isMoving(err):
			*complete = false
			continue
		default:
			return err
		}
		switch r := reply.(type) {
		case *redis.StringCmd:
			p.Values = append(p.Values, r.Val())
		case *redis.IntCmd:
			p.Counts = append(p.Counts, r.Val())
		}
		keys = append(keys, p.Keys[i])
	}
	p.Keys = keys
	return nil
}
