package httpapi

import (
	"net/http"
	"strings"

	"github.com/quotasvc/quotasvc/internal/body"
	"github.com/quotasvc/quotasvc/internal/bound"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

// blockValueMax is the longest id, and longer than any prefix.
const blockValueMax = 128

// putBlock creates or replaces a block.
func (s *Server) putBlock(rc *request) error {
	b, err := rc.blockParameters()
	if err != nil {
		return err
	}
	without := []string{"kind", "value"}
	if b.Kind == catalog.BlockIP && rc.isPrefix() {
		without = append(without, "tenant")
	}
	if err := rc.decodeObject(&b, without...); err != nil {
		return err
	}
	stored, created, err := s.store.PutBlock(rc.ctx, b)
	if err != nil {
		return err
	}
	return rc.send(putStatus(created), blockOf(&stored))
}

// getBlock answers one block.
func (s *Server) getBlock(rc *request) error {
	b, err := rc.blockParameters()
	if err != nil {
		return err
	}
	if b, err = s.store.Block(rc.ctx, b.Kind, b.Value, b.Tenant); err != nil {
		return err
	}
	return rc.send(http.StatusOK, blockOf(&b))
}

// listBlocks answers a page of blocks.
func (s *Server) listBlocks(rc *request) error {
	page, err := rc.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.store.ListBlocks(rc.ctx, page)
	if err != nil {
		return err
	}
	return rc.send(http.StatusOK, wire.BlockList{Items: mapSlice(list.Items, blockOf), NextCursor: nextCursor(list.NextCursor)})
}

// deleteBlock ends a block.
func (s *Server) deleteBlock(rc *request) error {
	b, err := rc.blockParameters()
	if err != nil {
		return err
	}
	if err := s.store.DeleteBlock(rc.ctx, b.Kind, b.Value, b.Tenant); err != nil {
		return err
	}
	return rc.NoContent(http.StatusNoContent)
}

// blockParameters is the block that the path and query name. What they name is the catalogue's to check, but for what could
// not even be part of it. A prefix comes in one segment with an escaped slash, or in two.
func (rc *request) blockParameters() (catalog.Block, error) {
	b := catalog.Block{Kind: rc.parameter("kind"), Value: rc.parameter("value"), Tenant: rc.query.id("tenant")}
	switch b.Kind {
	case catalog.BlockTenant, catalog.BlockSubject, catalog.BlockIP:
	default:
		rc.query.faults.Add("kind", "must be tenant, subject, ip")
	}
	if !bound.ASCII(b.Value, '!', 1, blockValueMax) {
		rc.query.faults.Add("value", "must be an id, an address or a prefix such as 192.0.2.0/24")
	}
	if rc.isPrefix() {
		bits := rc.parameter("bits")
		if n, ok := body.ParseInteger(bits); !ok || n > 128 {
			rc.query.faults.Add("bits", "must be an integer from 0 to 128")
		} else if b.Kind != catalog.BlockIP {
			rc.query.faults.Add("bits", "goes with kind ip only")
		}
		b.Value += "/" + bits
	}
	return b, rc.query.err()
}

// isPrefix says that the path has a prefix in two segments.
func (rc *request) isPrefix() bool { return strings.HasSuffix(rc.Path(), "/:bits") }

func blockOf(b *catalog.Block) wire.Block {
	return wire.Block{
		Kind: wire.BlockKind(b.Kind), Value: b.Value, Tenant: b.Tenant, Action: wire.BlockAction(b.Action), ExpiresAt: b.ExpiresAt, Reason: b.Reason,
		CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt,
	}
}
