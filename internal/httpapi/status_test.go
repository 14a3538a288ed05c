package httpapi

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
)

func TestGetStatus_RequestsRefusalsJobs(t *testing.T) {
	t.Parallel()
	s := newService(t).catalogue()
	got := decoded[client.ServiceStatus](s.call("GET", "/v1/status", "").want(200))
	assert.True(t, got.Requests.Answered != 0 && !got.Refusals.From.IsZero() && got.Refusals.Total == 0 && got.Roll.RollID == "" && got.Degraded != nil &&
		len(got.Degraded) == 0, got)
	s.call("POST", "/v1/rolls", "").want(202)
	s.eventually("the roll is there", func() bool {
		got = client.ServiceStatus{}
		s.call("GET", "/v1/status", "").want(200).into(&got)
		return got.Roll.RollID != ""
	})
	s.call("GET", "/v1/status?tenant=acme", "").want(400)
}
