package httpapi

import (
	"fmt"
	"net/http"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/encoding"
	"github.com/quotasvc/quotasvc/internal/kit/body"
)

func checkBatchMembers(check []body.Member[gate.Request]) []body.Member[[]gate.Request] {
	return []body.Member[[]gate.Request]{
		body.Required("checks", func(d *body.Document, checks *[]gate.Request) {
			body.ReadList(d, checks, 1, gate.CheckBatchMax, func(d *body.Document, r *gate.Request) { body.ReadObject(d, r, check) })
		}),
	}
}

// checkBatch carries out independent checks and returns each result. It does nothing unless all of them are
// well-formed.
func (s *Server) checkBatch(rc *request) error {
	var checks []gate.Request
	if err := decode(rc, &checks, s.bodies.checkBatch); err != nil {
		return err
	}
	for i := range checks {
		if err := requireDemand(&checks[i], fmt.Sprintf("checks[%d].", i)); err != nil {
			return err
		}
	}
	return rc.sendChecks(rc.checkOwn(checks))
}

func (rc *request) sendChecks(outcomes []gate.CheckOutcome) error {
	out := append(rc.out[:0], `{"results":[`...)
	for i := range outcomes {
		if i > 0 {
			out = append(out, ',')
		}
		if err := outcomes[i].Err; err != nil {
			p := rc.server.problemOf(err)
			if p.kind.status >= http.StatusInternalServerError {
				rc.code, rc.cause = p.code, err
			}
			out = appendProblem(out, &p, rc.requestID)
			continue
		}
		out = encoding.AppendCheck(out, &outcomes[i].Check)
	}
	return rc.sendBytes(http.StatusOK, typeJSON, append(out, "]}"...))
}

// checkOwn carries out the checks of tenants that the key may reach, and refuses the others.
func (rc *request) checkOwn(checks []gate.Request) []gate.CheckOutcome {
	if rc.key.Tenant == "" {
		return rc.server.admission.CheckBatch(rc.ctx, checks)
	}
	rc.tenant = rc.key.Tenant
	out := make([]gate.CheckOutcome, len(checks))
	own, at := make([]gate.Request, 0, len(checks)), make([]int, 0, len(checks))
	for i := range checks {
		if rc.key.May(checks[i].Tenant) {
			own, at = append(own, checks[i]), append(at, i)
		} else {
			out[i].Err = errOtherTenant()
		}
	}
	for i, o := range rc.server.admission.CheckBatch(rc.ctx, own) {
		out[at[i]] = o
	}
	return out
}
