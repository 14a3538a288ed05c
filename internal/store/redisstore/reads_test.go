package redisstore

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestNewReads_RefusesForeignTagsAndTooMany(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]string{"{acme}"}, MaxReads+1)
	for _, keys := range [][]string{{"acme"}, {"{acm}"}, {"{acmee}"}, {"{acme"}, {"{other}{acme}"}, {""}, {"{}"}, many, {"{acme}", "{b}"}} {
		reads, err := NewReads("acme", keys)
		assert.Error(t, err, "%q: %+v", keys, reads)
	}
	store := storeOn(t, patientClient(t, testenv.Redis(t)), Config{Budget: testenv.Patience})
	reads := testenv.Must(t).Get(NewReads("acme", many[:MaxReads]))
	if err := store.Read(t.Context(), reads); err != nil || len(reads.Values) != MaxReads {
		t.Errorf("%d values of %d keys, %v", len(reads.Values), MaxReads, err)
	}
}

// TestReadPlan_ReadsEachKeyOnce: a key that many requests need is read once. A command has at most maxCommandKeys
// keys. On a cluster, all keys of a command are in one slot.
func TestReadPlan_ReadsEachKeyOnce(t *testing.T) {
	t.Parallel()
	for _, cluster := range []bool{false, true} {
		p := readPlan{cluster: cluster}
		for i := range 64 {
			p.add([]string{"{acme}", "{acme}" + strconv.Itoa(i%3)})
		}
		assert.True(t, len(p.commands) == 1 && len(p.commands[0].args) == 1+4,
			"cluster %v: commands %v", cluster, p.commands)
		p.clear()
		for i := range 2 * maxCommandKeys {
			p.add([]string{fmt.Sprint("{a}", i), fmt.Sprint("{b}", i)})
		}
		assert.Len(t, p.commands, 4, "cluster %v: %d commands", cluster, len(p.commands))
		for _, c := range p.commands {
			tags := make(map[string]bool)
			for _, key := range c.args[1:] {
				tags[HashTag(*key.(*string))] = true
			}
			assert.True(t, len(c.args) <= 1+maxCommandKeys && (!cluster || len(tags) <= 1),
				"cluster %v: a command of %d keys with tags %v", cluster, len(c.args)-1, tags)
		}
	}
}

// TestReadPlan_KeepsNothing: the memory of a plan is reused, and must not refer to earlier requests.
func TestReadPlan_KeepsNothing(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	store := storeOn(t, client, Config{})
	p := readPlan{}
	for range 3 {
		p.add([]string{"keeps:a", "keeps:b"})
		p.add(nil)
		p.add([]string{"keeps:b"})
		store.sendReads(t.Context(), &p, false)
		got := fmt.Sprintf("%q %q %q", p.of(0), p.of(1), p.of(2))
		assert.True(t, got == `["" ""] [] [""]` && p.of(1) == nil && p.away() == nil, "values %s", got)
		p.clear()
		assert.True(t, len(p.commands) == 0 && len(p.open) == 0 && len(p.places) == 0 && len(p.wanted) == 0 && len(p.ends) == 0 &&
			p.values == nil && !p.sent, "left behind: %+v", p)
		for _, c := range p.commands[:cap(p.commands)] {
			assert.True(t, c.cmd == nil && c.err == nil && !holds(c.args), "left behind: %+v", c)
		}
	}
}

// TestReadAll_ReadsAnySlot reads keys of many tenants on one server and on a cluster.
func TestReadAll_ReadsAnySlot(t *testing.T) {
	t.Parallel()
	var keys, want []string
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("all:{t%d}", i))
		want = append(want, "")
		if i%3 == 0 {
			want[i] = fmt.Sprint("value ", i)
		}
	}
	cluster := testenv.CloseAtEnd(t, testenv.Must(t).Get(NewClient(testenv.RedisClusterPrivate(t).URL)))
	for name, client := range map[string]redis.UniversalClient{"single": patientClient(t, testenv.Redis(t)), "cluster": cluster} {
		for i, key := range keys {
			if want[i] == "" {
				continue
			}
			require.NoError(t, client.Set(t.Context(), key, want[i], 0).Err(), name)
		}
		got, err := storeOn(t, client, Config{}).ReadAll(t.Context(), keys)
		assert.True(t, err == nil && reflect.DeepEqual(got, want), "%s: %q, %v", name, got, err)
	}
}
