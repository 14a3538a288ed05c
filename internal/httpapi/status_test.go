package httpapi

import (
	"testing"

	"github.com/quotasvc/quotasvc/client"
)

func TestGetStatus_RequestsRefusalsJobs(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.catalogue()
	var got client.ServiceStatus
	s.call("GET", "/v1/status", "").want(200).into(&got)
	if got.Requests.Answered == 0 || got.Refusals.From.IsZero() || got.Refusals.Total != 0 || got.Roll.RollID != "" || got.Degraded == nil || len(got.Degraded) != 0 {
		t.Errorf("%+v", got)
	}
	s.call("POST", "/v1/rolls", "").want(202)
	s.eventually("the roll is there", func() bool {
		got = client.ServiceStatus{}
		s.call("GET", "/v1/status", "").want(200).into(&got)
		return got.Roll.RollID != ""
	})
	s.call("GET", "/v1/status?tenant=acme", "").want(400)
}
