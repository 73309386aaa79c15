package order_test
import ("testing";"syscall";"fmt";"shardtool/reader/order")
func cpu() int64 { var r syscall.Rusage; syscall.Getrusage(0,&r); return r.Utime.Nano() }
func TestScratch(t *testing.T) {
	for name, tr := range steady() {
		tr.Epochs = order.Endless
		m, _ := order.New(tr.Plan, 0, 1)
		take := func(_, _, shard int32, index int64) (bool, error) { return index < tr.counts[shard], nil }
		refs := make([]order.Ref, 0, 256)
		a := cpu()
		for range 20000 { refs, _, _ = m.Step(refs, take) }
		fmt.Printf("%s %.1f ns cpu/ref\n", name, float64(cpu()-a)/20000/256)
	}
	counts := make([]int64, 1000)
	for i := range counts { counts[i] = 1_000_000 }
	for _, shuffle := range []order.Shuffle{order.None, order.Global} {
		m, _ := order.New(counted(order.Plan{Batch: 1024, Shuffle: shuffle, Tail: order.TailDrop, Epochs: order.Endless}, counts...).Plan, 0, 1)
		refs := make([]order.Ref, 0, 1024)
		a := cpu()
		for range 20000 { refs, _, _ = m.Step(refs, nil) }
		fmt.Printf("1e9 %v %.1f ns cpu/ref\n", shuffle, float64(cpu()-a)/20000/1024)
	}
}
