package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/ledger/audit"
	"github.com/quotasvc/quotasvc/internal/ledger/audit/seal"
)

// The answer equals the file that `quotasvc seal` writes, so the verification accepts a saved answer, too.
func TestSeals_ListAndFile(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	s.call("GET", "/v1/seals", "").want(200).into(&client.SealList{})
	owner := s.openVerifier(s.pool.Config().ConnString()) // the role of the service may not write seals
	var made []string
	days := []string{"2025-01-01", "2025-01-02", "2025-01-04"}
	for _, text := range days {
		day, err := time.Parse(time.DateOnly, text)
		s.check(err)
		sealed, err := owner.Seal(t.Context(), audit.SealOptions{Day: day})
		s.check(err)
		file, err := sealed.Encode()
		s.check(err)
		made = append(made, string(file))
	}
	for i, day := range days {
		answer := s.call("GET", "/v1/seals/"+day, "").want(200)
		got, err := seal.Parse(answer.body, nil)
		if err != nil {
			t.Errorf("%s: %v", day, err)
			continue
		}
		file, err := got.Encode()
		s.check(err)
		assert.Equal(t, made[i], string(file), day)
	}
	var listed []string
	for _, item := range pages[client.SealSummary](s, "/v1/seals?", 1) {
		listed = append(listed, fmt.Sprintf("%s %d", item.Day, item.Position))
	}
	assert.Equal(t, []string{"2025-01-04 2", "2025-01-02 1", "2025-01-01 0"}, listed)
	s.call("GET", "/v1/seals/2025-01-03", "").problem(404, "not_found")
	s.call("GET", "/v1/seals/2025-01-05", "").problem(404, "not_found")
	s.call("GET", "/v1/seals/yesterday", "").refused("day")
	s.call("GET", "/v1/seals?cursor=x", "").refused("cursor")
	s.call("GET", "/v1/seals?cursor=-1", "").refused("cursor")
	s.call("GET", "/v1/seals?limit=0", "").refused("limit")
}
