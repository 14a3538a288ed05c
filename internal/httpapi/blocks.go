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
func (s *Server) putBlock(x *exchange) error {
	b, err := x.blockParameters()
	if err != nil {
		return err
	}
	without := []string{"kind", "value"}
	if b.Kind == catalog.BlockIP && x.isPrefix() {
		without = append(without, "tenant")
	}
	if err := x.decodeObject(&b, without...); err != nil {
		return err
	}
	stored, created, err := s.store.PutBlock(x.ctx, b)
	if err != nil {
		return err
	}
	return x.send(putStatus(created), blockOf(&stored))
}

// getBlock answers one block.
func (s *Server) getBlock(x *exchange) error {
	b, err := x.blockParameters()
	if err != nil {
		return err
	}
	if b, err = s.store.Block(x.ctx, b.Kind, b.Value, b.Tenant); err != nil {
		return err
	}
	return x.send(http.StatusOK, blockOf(&b))
}

// listBlocks answers a page of blocks.
func (s *Server) listBlocks(x *exchange) error {
	page, err := x.catalogPage()
	if err != nil {
		return err
	}
	list, err := s.store.ListBlocks(x.ctx, page)
	if err != nil {
		return err
	}
	return x.send(http.StatusOK, wire.BlockList{Items: mapSlice(list.Items, blockOf), NextCursor: nextCursor(list.NextCursor)})
}

// deleteBlock ends a block.
func (s *Server) deleteBlock(x *exchange) error {
	b, err := x.blockParameters()
	if err != nil {
		return err
	}
	if err := s.store.DeleteBlock(x.ctx, b.Kind, b.Value, b.Tenant); err != nil {
		return err
	}
	return x.NoContent(http.StatusNoContent)
}

// blockParameters is the block that the path and query name. What they name is the catalogue's to check, but for what could
// not even be part of it. A prefix comes in one segment with an escaped slash, or in two.
func (x *exchange) blockParameters() (catalog.Block, error) {
	b := catalog.Block{Kind: x.parameter("kind"), Value: x.parameter("value"), Tenant: x.query.id("tenant")}
	switch b.Kind {
	case catalog.BlockTenant, catalog.BlockSubject, catalog.BlockIP:
	default:
		x.query.faults.Add("kind", "must be tenant, subject, ip")
	}
	if !bound.ASCII(b.Value, '!', 1, blockValueMax) {
		x.query.faults.Add("value", "must be an id, an address or a prefix such as 192.0.2.0/24")
	}
	if x.isPrefix() {
		bits := x.parameter("bits")
		if n, ok := body.ParseInteger(bits); !ok || n > 128 {
			x.query.faults.Add("bits", "must be an integer from 0 to 128")
		} else if b.Kind != catalog.BlockIP {
			x.query.faults.Add("bits", "goes with kind ip only")
		}
		b.Value += "/" + bits
	}
	return b, x.query.err()
}

// isPrefix says that the path has a prefix in two segments.
func (x *exchange) isPrefix() bool { return strings.HasSuffix(x.Path(), "/:bits") }

func blockOf(b *catalog.Block) wire.Block {
	return wire.Block{
		Kind: wire.BlockKind(b.Kind), Value: b.Value, Tenant: b.Tenant, Action: wire.BlockAction(b.Action), ExpiresAt: b.ExpiresAt, Reason: b.Reason,
		CreatedAt: b.CreatedAt, UpdatedAt: b.UpdatedAt,
	}
}
