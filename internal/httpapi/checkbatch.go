package httpapi

import (
	"context"
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

// checkBatch carries out independent checks and returns the result of each check. If one check is malformed, it
// carries out none.
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
	outcomes := ofOwnTenants(rc, checks, nil, s.gate.CheckBatch, func(err error) gate.CheckOutcome {
		return gate.CheckOutcome{Err: err}
	})
	return rc.sendChecks(outcomes)
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

// ofOwnTenants carries out those requests whose tenants the key may reach and that are not refused already. For every
// other request, the result is what refuse returns. The results have the order of the requests.
func ofOwnTenants[O any](
	rc *request, all []gate.Request, refused map[int]error,
	carryOut func(context.Context, []gate.Request) []O, refuse func(error) O,
) []O {
	if rc.key.Tenant == "" && refused == nil {
		return carryOut(rc.ctx, all)
	}
	rc.tenant = rc.key.Tenant
	out := make([]O, len(all))
	own := make([]gate.Request, 0, len(all))
	at := make([]int, 0, len(all))
	for i := range all {
		switch {
		case !rc.key.May(all[i].Tenant):
			out[i] = refuse(errOtherTenant())
		case refused[i] != nil:
			out[i] = refuse(refused[i])
		default:
			own = append(own, all[i])
			at = append(at, i)
		}
	}
	for i, o := range carryOut(rc.ctx, own) {
		out[at[i]] = o
	}
	return out
}
