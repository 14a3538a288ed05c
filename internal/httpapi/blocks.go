package httpapi

import (
	"net/http"
	"strings"

	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// blockValueMax is the maximum length of a blocked id or address prefix, in bytes.
const blockValueMax = bound.MaxName

// putBlock creates or replaces a block.
func (s *Server) putBlock(rc *request) error {
	b, err := rc.blockParameters()
	if err != nil {
		return err
	}
	without := []string{"kind", "value"}
	if b.Kind == block.KindIP && rc.isPrefix() {
		without = append(without, "tenant")
	}
	if err := rc.decodeObject(&b, without...); err != nil {
		return err
	}
	if err := rc.ofTenant(b.Of()); err != nil {
		return err
	}
	stored, created, err := s.store.PutBlock(rc.ctx, b)
	return sendObject(rc, createdStatus(created), &stored, err, answers.Block)
}

// getBlock answers with the block in the path.
func (s *Server) getBlock(rc *request) error {
	b, err := rc.blockParameters()
	if err != nil {
		return err
	}
	if err := rc.ofBlock(&b); err != nil {
		return err
	}
	b, err = s.store.Block(rc.ctx, b.Kind, b.Value, b.Tenant)
	return sendObject(rc, http.StatusOK, &b, err, answers.Block)
}

// listBlocks answers with a page of blocks.
func (s *Server) listBlocks(rc *request) error {
	return listPage(rc, s.store.ListBlocks, answers.Block)
}

// deleteBlock deletes a block.
func (s *Server) deleteBlock(rc *request) error {
	b, err := rc.blockParameters()
	if err != nil {
		return err
	}
	if err := rc.ofBlock(&b); err != nil {
		return err
	}
	return rc.sendNoContent(s.store.DeleteBlock(rc.ctx, b.Kind, b.Value, b.Tenant))
}

// blockParameters returns the block that the path and the query identify. It refuses only text that cannot be part of
// an id or a prefix: the catalogue checks ids and prefixes. In the path, a prefix such as 10.0.0.0/8 is one segment
// with an escaped slash, or two segments.
func (rc *request) blockParameters() (block.Block, error) {
	b := block.Block{Kind: rc.parameter("kind"), Value: rc.parameter("value"), Tenant: rc.query.name("tenant")}
	switch b.Kind {
	case block.KindTenant, block.KindSubject, block.KindIP:
	default:
		rc.query.faults.Add("kind", body.OneOf(block.KindTenant, block.KindSubject, block.KindIP))
	}
	if !bound.ASCII(b.Value, '!', 1, blockValueMax) {
		rc.query.faults.Add("value", "must be an id, an address or a prefix such as 192.0.2.0/24")
	}
	if rc.isPrefix() {
		bits := rc.parameter("bits")
		if n, ok := body.ParseInteger(bits); !ok || n > 128 {
			rc.query.faults.Add("bits", bound.MustBeInteger(0, 128))
		} else if b.Kind != block.KindIP {
			rc.query.faults.Add("bits", "requires kind ip")
		}
		b.Value += "/" + bits
	}
	return b, rc.query.err()
}

// ofBlock records the tenant of a block, and refuses a key that is bound to another tenant (see ofTenant). If a block
// of a subject has no tenant, ofBlock sets the key's tenant.
func (rc *request) ofBlock(b *block.Block) error {
	if b.Kind == block.KindSubject && b.Tenant == "" {
		b.Tenant = rc.key.Tenant
	}
	return rc.ofTenant(b.Of())
}

// isPrefix reports whether the path has an address prefix in two segments, such as 10.0.0.0/8.
func (rc *request) isPrefix() bool { return strings.HasSuffix(rc.Path(), "/:bits") }
