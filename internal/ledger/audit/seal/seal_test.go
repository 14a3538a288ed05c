package seal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/sumdb/tlog"
)

// Heads computes the root of a Merkle tree (RFC 6962) from one hash per level. It must equal the root that the
// library computes from all hashes.
func TestHeads_AnyNumber_RootIsThatOfRFC6962(t *testing.T) {
	t.Parallel()
	var heads Heads
	var stored []Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]Hash, error) {
		out := make([]Hash, len(indexes))
		for i, index := range indexes {
			out[i] = stored[index]
		}
		return out, nil
	})
	for n := range int64(300) {
		want, err := tlog.TreeHash(n, reader)
		require.NoError(t, err)
		got := heads.Root()
		require.True(t, got == want && heads.N == n, "root of %d heads is %v, want %v", n, got, want)
		tenant := fmt.Sprint("tenant-", n)
		leaf := fmt.Appendf(nil, "%c%s\x05meter\x00chain", len(tenant), tenant)
		hashes, err := tlog.StoredHashes(n, leaf, reader)
		require.NoError(t, err)
		stored = append(stored, hashes...)
		heads.Add(tenant, "meter", "", []byte("chain"))
	}
}

// seals returns the seals of n successive days.
func seals(t *testing.T, n int, private string) []*Seal {
	t.Helper()
	var l Log
	var out []*Seal
	for i := range n {
		day := time.Date(2026, 11, 1+i, 0, 0, 0, 0, time.UTC)
		r := &Record{Database: "d-1", Day: day.Format(time.DateOnly), Heads: int64(i), Root: tlog.RecordHash([]byte{byte(i)})}
		require.NoError(t, l.Append(r))
		s, err := New(&l, r, day.Add(25*time.Hour))
		require.NoError(t, err)
		signer, err := ReadPrivateKey(private)
		if private == "" {
			signer, err = nil, nil
		}
		require.NoError(t, err)
		require.NoError(t, s.Sign(signer))
		out = append(out, s)
	}
	return out
}

func encode(t *testing.T, s *Seal) []byte {
	t.Helper()
	text, err := s.Encode()
	require.NoError(t, err)
	return text
}

func TestParse_WhatWasEncoded_IsRead(t *testing.T) {
	t.Parallel()
	private, public, err := NewKey("example.com/seals")
	require.NoError(t, err)
	verifier, err := ReadPublicKey(public)
	require.NoError(t, err)
	for _, s := range seals(t, 9, private) {
		got, err := Parse(encode(t, s), verifier)
		require.NoError(t, err, "%s", s.Day)
		assert.True(t, got.Tree() == s.Tree() && *got.Record() == *s.Record() && got.Signer() == "example.com/seals",
			"%s: read %+v", s.Day, got)
	}
	for _, s := range seals(t, 3, "") {
		got, err := Parse(encode(t, s), nil)
		assert.True(t, err == nil && got.Signer() == "", "without a signature: %v", err)
	}
}

// If any member of a seal's JSON is changed, Parse or the signature's check fails. The only exception is the instant
// of sealing, on which nothing depends.
func TestParse_ChangedMember_RefusedByName(t *testing.T) {
	t.Parallel()
	private, public, err := NewKey("example.com/seals")
	require.NoError(t, err)
	verifier, err := ReadPublicKey(public)
	require.NoError(t, err)
	_, otherPublic, err := NewKey("example.com/seals")
	require.NoError(t, err)
	other, err := ReadPublicKey(otherPublic)
	require.NoError(t, err)
	all := seals(t, 5, private)
	good := all[3]
	hash := tlog.RecordHash([]byte("x"))
	for _, c := range []struct {
		member string
		value  any
		want   string
	}{
		{"format", 2, "format"},
		{"database_id", "d-2", "is of"},
		{"day", "2026-11-30", "does not contain"},
		{"day", "yesterday", "not a day"},
		{"heads", 77, "does not contain"},
		{"root", hash, "does not contain"},
		{"position", 2, "position"},
		{"checkpoint", all[4].Checkpoint, "position"},
		{"checkpoint", "quotasvc/seals/d-1\n4\n" + hash.String() + "\n", "not signed"},
		{"checkpoint", strings.Replace(good.Checkpoint, "\n4\n", "\n5\n", 1), "not signed by"},
		{"checkpoint", "", "not signed"},
		{"inclusion_proof", []Hash{hash}, "does not contain"},
		{"previous", nil, "previous is missing"},
		{"previous", Tree{Size: 2, Root: hash}, "size 2"},
		{"previous", Tree{Size: 3, Root: hash}, "does not begin"},
		{"consistency_proof", []Hash{}, "does not begin"},
	} {
		var members map[string]any
		require.NoError(t, json.Unmarshal(encode(t, good), &members))
		members[c.member] = c.value
		text, err := json.Marshal(members)
		require.NoError(t, err)
		if _, err := Parse(text, verifier); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %v: %v; want an error with %q", c.member, c.value, err, c.want)
		}
	}
	_, err = Parse(encode(t, good), other)
	assert.True(t, err != nil && strings.Contains(err.Error(), "not signed by the key"), "another key: %v", err)
	for _, text := range []string{"", "seal", "[]", strings.Repeat(" ", FileMax+1)} {
		_, err = Parse([]byte(text), nil)
		assert.Error(t, err, "%d bytes that are no seal are read", len(text))
	}
}

func TestKeys_BadOnes_RefusedWithoutShowingThem(t *testing.T) {
	t.Parallel()
	private, _, err := NewKey("a")
	require.NoError(t, err)
	broken := private[:len(private)-4]
	if _, err := ReadPrivateKey(broken); err == nil || strings.Contains(err.Error(), broken[len(broken)-20:]) {
		t.Errorf("a broken private key: %v", err)
	}
	_, err = ReadPublicKey(private)
	assert.Error(t, err, "a private key is taken for a public one")
	for _, name := range []string{"", "two words", "a+b"} {
		_, _, err = NewKey(name)
		assert.Error(t, err, "a key named %q was made", name)
	}
}
