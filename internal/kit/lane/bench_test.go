package lane_test

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/lane"
)

// concurrency is the number of callers per core. Batches form only when many callers wait.
const concurrency = 256

// BenchmarkLane measures the cost of an item without its processing.
func BenchmarkLane(b *testing.B) {
	for name, metrics := range map[string]*lane.Metrics{
		"bare": nil, "metrics": lane.NewMetrics(prometheus.NewRegistry()),
	} {
		b.Run(name, func(b *testing.B) {
			var answers []int
			l := lane.New(lane.Config{Name: "bench", MaxQueue: 1 << 14, MaxBatch: 1024, Metrics: metrics}, nil,
				func(_ context.Context, batch []int) []int {
					answers = append(answers[:0], batch...)
					return answers
				})
			b.ReportAllocs()
			b.SetParallelism(concurrency)
			b.RunParallel(func(pb *testing.PB) {
				ctx, cancel := context.WithCancel(context.Background()) // it can end, like the context of a request
				defer cancel()
				for pb.Next() {
					if _, err := l.Do(ctx, 1); err != nil {
						b.Error(err)
					}
				}
			})
			require.NoError(b, l.Stop(context.Background()))
		})
	}
}

// BenchmarkUnbatchedChannel is for comparison with BenchmarkLane. One goroutine processes one item at a time, with
// one channel for the items and one for each answer.
func BenchmarkUnbatchedChannel(b *testing.B) {
	type item struct {
		q    int
		done chan int
	}
	queue, ended := make(chan item, 1<<14), make(chan struct{})
	go func() {
		defer close(ended)
		for i := range queue {
			i.done <- i.q
		}
	}()
	b.ReportAllocs()
	b.SetParallelism(concurrency)
	b.RunParallel(func(pb *testing.PB) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for pb.Next() {
			i := item{1, make(chan int, 1)}
			queue <- i
			select {
			case <-i.done:
			case <-ctx.Done():
			}
		}
	})
	close(queue)
	<-ended
}
