package lane

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// linksMax bounds the links of a batch's span, and so the size of the span.
const linksMax = 128

// spanOf returns the span of a sampled request. It returns nil if the request is not sampled.
func (l *Lane[Q, A]) spanOf(ctx context.Context) trace.Span {
	if l.cfg.Tracer == nil {
		return nil
	}
	if span := trace.SpanFromContext(ctx); span.SpanContext().IsSampled() {
		return span
	}
	return nil
}

// traced returns the context in which the batch is processed, and a function that ends its span. A batch with sampled
// requests has its own span. It belongs to several requests, so the span has links to the sampled requests, and they
// have links to it.
func (l *Lane[Q, A]) traced() (context.Context, func()) {
	if l.cfg.Tracer == nil {
		return l.ctx, func() {}
	}
	var links []trace.Link
	for _, t := range l.batch {
		if t.asker != nil && len(links) < linksMax {
			links = append(links, trace.Link{SpanContext: t.asker.SpanContext()})
		}
	}
	if links == nil {
		return l.ctx, func() {}
	}
	// The batch is a child of its first sampled request. So the trace of a request that is alone in its batch shows
	// everything.
	parent := trace.ContextWithSpanContext(l.ctx, links[0].SpanContext)
	ctx, span := l.cfg.Tracer.Start(parent, "batch "+l.cfg.Name, trace.WithLinks(links...),
		trace.WithAttributes(attribute.String("quotasvc.lane", l.cfg.Name), attribute.Int("quotasvc.batch_items", len(l.items))))
	own := trace.Link{SpanContext: span.SpanContext()}
	for _, t := range l.batch[1:] {
		if t.asker != nil {
			t.asker.AddLink(own)
		}
	}
	return ctx, func() { span.End() }
}
