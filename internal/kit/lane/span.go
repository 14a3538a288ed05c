package lane

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// linksMax bounds the links of the span of a batch, and so the size of this span.
const linksMax = 128

// spanOf returns the span in ctx. It returns nil if the request is not sampled or there is no tracing.
func (l *Lane[Q, A]) spanOf(ctx context.Context) trace.Span {
	if l.cfg.Tracer == nil {
		return nil
	}
	if span := trace.SpanFromContext(ctx); span.SpanContext().IsSampled() {
		return span
	}
	return nil
}

// traced returns the context in which the batch is processed, and a function that ends the span of the batch. A batch
// with sampled requests has its own span. This span belongs to several requests. So it has links to the sampled
// requests, and they have links to it.
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
	// The span of the batch is a child of the first sampled request. So if a request is alone in its batch, its trace
	// contains everything.
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
