package queue

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPushNext is one item in and one out with 1,000 waiting.
func BenchmarkPushNext(b *testing.B) {
	for _, flows := range []int{1, 10, 128} {
		b.Run(fmt.Sprintf("flows=%d", flows), func(b *testing.B) {
			q := New(Config{Length: 2000, Bytes: 1 << 40, Wait: time.Hour})
			keys := []Key{new(int), new(int), new(int)}
			items := make([]*Item, 1000)
			for i := range items {
				items[i] = &Item{Flow: fmt.Sprint(i % flows), Priority: Interactive, Cost: int64(500 + i%1000), Bytes: 1000, Keys: keys}
				q.Push(epoch, items[i])
			}
			b.ReportAllocs()
			for b.Loop() {
				it := q.Next(epoch, keys[1])
				q.Done(epoch, it)
				q.Push(epoch, it)
			}
		})
	}
}

// BenchmarkFull is a newcomer that evicts, at 1,000 waiting.
func BenchmarkFull(b *testing.B) {
	q := New(Config{Length: 1000, Bytes: 1 << 40, Wait: time.Hour})
	keys := []Key{new(int)}
	for i := range 1000 {
		q.Push(epoch, &Item{Flow: fmt.Sprint(i % 10), Priority: Batch, Cost: 1000, Keys: keys})
	}
	b.ReportAllocs()
	for b.Loop() {
		it := &Item{Flow: "new", Priority: Interactive, Cost: 1000, Keys: keys}
		q.Push(epoch, it)
		q.Remove(epoch, it, Removed)
		for _, v := range q.Gone() {
			q.Push(epoch, v)
		}
	}
}
