package loader_test

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/goleak"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/reader/store/stores"
	"shardtool/shard"
	"shardtool/tensor"
)

const (
	soakTime = 80 * time.Second // in all, and until the end of a round
	soakTurn = 4 * time.Second  // of one mode; then the next one goes on from its state
	soakRoom = 96 << 20         // by which resident memory may be larger than ever in the first round
	soakRest = 16 << 20         // by which what is left after a turn may be

	soakShards  = 8
	soakSamples = 256 // of a shard
)

// TestSoakS3 loads from a real S3 server through a network that is slow, stalls,
// cuts and resets connections, and answers 503 now and then. What is delivered
// is what the plan alone says, byte for byte, although every mode is closed and
// resumed again and again; memory stays flat, and no goroutine stays.
func TestSoakS3(t *testing.T) {
	server, toxiproxy := soakServer(t, "SHARDTOOL_S3_ENDPOINT"), soakServer(t, "SHARDTOOL_TOXIPROXY")
	before := goleak.IgnoreCurrent()
	defer goleak.VerifyNone(t, before)
	data := newSoakData()
	names := data.upload(t, server)
	debug.FreeOSMemory() // what the uploads had
	t.Logf("%d MiB are resident before loading", soakResident(t)>>20)

	faults := newFaults(t, toxiproxy, server)
	defer faults.close()
	st := stores.New(&stores.Options{Endpoint: faults.front.URL, Connections: 8, Stall: 700 * time.Millisecond, Attempts: 40, ReadAhead: 32 << 20})
	defer st.Close()
	modes := []*soakMode{
		{data: data, name: "none", shuffle: order.None},
		{data: data, name: "block", shuffle: order.Block(3)},
		{data: data, name: "stream", shuffle: order.Stream(4, 100)},
		{data: data, name: "global", shuffle: order.Global},
	}
	var warm, most, warmRest, rest int64
	began := time.Now()
	for round := 0; round < 2 || time.Since(began) < soakTime; round++ {
		for _, m := range modes {
			peak := m.turn(t, st, names)
			if t.Failed() {
				return
			}
			left := soakHeap()
			if round == 0 {
				warm, warmRest = max(warm, peak), max(warmRest, left)
			}
			most, rest = max(most, peak), max(rest, left)
		}
	}
	for _, m := range modes {
		t.Logf("%s: %d batches, %d samples, %d MB; sha256 %x", m.name, m.batches, m.samples, m.bytes/1e6, m.got.Sum(nil))
	}
	stats := st.Remote().Stats()
	t.Logf("%d requests, %d of them again, %d throttled; at most %d MiB resident, %d in the first round; at most %d KiB left after a turn, %d in the first round",
		stats.Requests, stats.Retries, stats.Throttled, most>>20, warm>>20, rest>>10, warmRest>>10)
	for i, way := range soakWays {
		if t.Logf("%s: %d requests", way.name, faults.counted[i]); faults.counted[i] == 0 {
			t.Errorf("none was %s: that proves nothing", way.name)
		}
	}
	if stats.Retries == 0 || stats.Throttled == 0 {
		t.Error("nothing was tried again: that proves nothing")
	}
	if most > warm+soakRoom || rest > warmRest+soakRest {
		t.Error("memory is not flat")
	}
}

func soakServer(t *testing.T, variable string) string {
	t.Helper()
	endpoint := os.Getenv(variable)
	switch {
	case endpoint != "":
	case os.Getenv("SHARDTOOL_NEED_SERVERS") != "":
		t.Fatal(variable + " is not set")
	default:
		t.Skip(variable + " is not set; .ci/servers.sh COMMAND starts the servers and sets it")
	}
	return endpoint
}

// soakMode is one run of training that is interrupted again and again.
type soakMode struct {
	data    *soakData
	name    string
	shuffle order.Shuffle

	plan      *order.Machine // says what has to come
	state     []byte         // of the last batch, in JSON
	got, want hash.Hash      // of all that came, and all that had to

	batches, samples, bytes int64
}

// turn loads for a while, from where the last turn ended, and returns the most
// memory that was resident.
func (m *soakMode) turn(t *testing.T, st store.Store, names []string) (peak int64) {
	t.Helper()
	ctx := t.Context()
	o := loader.Options{
		Columns:     []loader.Column{loader.Int64("cls"), loader.Ragged("ids.json", tensor.Int64), loader.Bytes("bin")},
		GlobalBatch: 48, Seed: 5, Epochs: order.Endless, Shuffle: m.shuffle, World: 1, MemoryBytes: 128 << 20,
	}
	if m.state != nil {
		o.Resume = new(loader.State)
		if err := json.Unmarshal(m.state, o.Resume); err != nil {
			t.Fatal(err)
		}
	}
	ld, err := loader.New(ctx, reader.New(st, names, &reader.Options{CacheDir: "-"}), &o)
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
		return 0
	}
	defer ld.Close()
	if m.plan == nil {
		if m.plan, err = order.New(ld.Plan(), 0, 1); err != nil {
			t.Fatal(err)
		}
		m.got, m.want = sha256.New(), sha256.New()
	}
	began, batches := time.Now(), m.batches
	for b, err := range ld.Batches(ctx) {
		if err != nil {
			t.Errorf("%s: after %d batches: %v", m.name, m.batches, err)
			return peak
		}
		m.add(t, b)
		if m.state, err = json.Marshal(b.State()); err != nil {
			t.Fatal(err)
		}
		b.Release()
		peak = max(peak, soakResident(t))
		if t.Failed() || time.Since(began) > soakTurn {
			break
		}
	}
	if m.batches == batches {
		t.Errorf("%s: no batch came", m.name)
	}
	return peak
}

// add holds a batch against the next step of the plan.
func (m *soakMode) add(t *testing.T, b *loader.Batch) {
	refs, ok, err := m.plan.Step(nil, nil)
	if !ok || err != nil || len(refs) != b.Len() {
		t.Fatalf("%s: the plan has %d samples for batch %d, %v", m.name, len(refs), m.batches, err)
	}
	labels, ids, blobs := b.Int64(0), b.Ragged(1), b.Binary(2)
	var one []byte
	for i, ref := range refs {
		one = appendSoakSample(one[:0], b.Key(i), labels[i], ids.At(i).Int64(), blobs.At(i))
		m.got.Write(one)
		label := 1000*int64(ref.Shard) + ref.Index
		one = appendSoakSample(one[:0], soakKey(label), label, soakIDs(label), m.data.blob(label))
		m.want.Write(one)
		m.bytes += int64(len(one))
		if !b.Valid[i] {
			t.Errorf("%s: batch %d has a hole", m.name, m.batches)
		}
	}
	if got, want := m.got.Sum(nil), m.want.Sum(nil); !bytes.Equal(got, want) {
		t.Errorf("%s: up to batch %d what was delivered has the hash %x, what the plan says %x; its samples: %v, labels %v", m.name, m.batches, got, want, refs, labels)
	}
	m.batches++
	m.samples += int64(len(refs))
}

// appendSoakSample appends a sample so that two that differ give other bytes.
func appendSoakSample(to, key []byte, label int64, ids []int64, blob []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(label))
	to = binary.LittleEndian.AppendUint64(to, uint64(len(ids)))
	for _, id := range ids {
		to = binary.LittleEndian.AppendUint64(to, uint64(id))
	}
	for _, b := range [][]byte{key, blob} {
		to = binary.LittleEndian.AppendUint64(to, uint64(len(b)))
		to = append(to, b...)
	}
	return to
}

func soakKey(label int64) []byte { return fmt.Appendf(nil, "k%06d", label) }

func soakIDs(label int64) []int64 {
	list := make([]int64, label%7)
	for i := range list {
		list[i] = label + int64(i)
	}
	return list
}

// soakData is bytes without a period, of which samples are cut.
type soakData struct{ noise []byte }

func newSoakData() *soakData {
	d := &soakData{make([]byte, 1<<20)}
	_, _ = rand.NewChaCha8([32]byte{7}).Read(d.noise) // it never fails
	return d
}

// blob returns 1 to 64 KiB for a sample, and not the same for two of them.
func (d *soakData) blob(label int64) []byte {
	size := 1<<10 + label*7919%(63<<10)
	at := label * 4099 % (int64(len(d.noise)) - size)
	return d.noise[at:][:size]
}

// upload makes the shards, tar and TFRecord by turns, and their indexes, in a
// bucket of their own.
func (d *soakData) upload(t *testing.T, endpoint string) (names []string) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	bucket := "soak-" + strings.ToLower(crand.Text()[:16])
	client := s3.New(s3.Options{
		BaseEndpoint: &endpoint, UsePathStyle: true, Region: "us-east-1", HTTPClient: &http.Client{Transport: tr},
		Credentials: credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
	})
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	st := stores.New(&stores.Options{Endpoint: endpoint})
	defer st.Close()
	for i := range soakShards {
		name := fmt.Sprintf("s3://%s/train/%06d.%s", bucket, i, [...]string{"tar", "tfrecord"}[i%2])
		if err := d.shard(t.Context(), st, name, i); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if _, err := shard.Index(t.Context(), names, &shard.IndexOptions{Options: shard.Options{Store: st}}); err != nil {
		t.Fatal(err)
	}
	return names
}

func (d *soakData) shard(ctx context.Context, st store.Store, name string, shard int) error {
	sink, err := st.Create(ctx, name)
	if err != nil {
		return err
	}
	defer sink.Abort()
	tars, records := tarshard.NewWriter(sink, nil), tfrecord.NewWriter(sink)
	for i := range int64(soakSamples) {
		label := 1000*int64(shard) + i
		if shard%2 == 0 {
			ids, _ := json.Marshal(soakIDs(label))
			err = tars.WriteSample(&format.Sample{Key: soakKey(label), Fields: []format.Field{
				{Name: "cls", Data: fmt.Append(nil, label)}, {Name: "ids.json", Data: ids}, {Name: "bin", Data: d.blob(label)},
			}})
		} else {
			var b tfexample.Builder
			b.AddBytes("__key__", soakKey(label))
			b.AddInt64("cls", label)
			b.AddInt64("ids.json", soakIDs(label)...)
			b.AddBytes("bin", d.blob(label))
			err = records.Write(b.AppendTo(nil))
		}
		if err != nil {
			return err
		}
	}
	if shard%2 == 0 {
		err = tars.Close()
	} else {
		err = records.Flush()
	}
	if err != nil {
		return err
	}
	return sink.Commit()
}

// faults is a way to the server on which things go wrong. A front takes the
// requests, answers 503 to some, lets others stall or end in the middle, and
// passes the rest on through proxies, of which each has a fault of its own.
// Which way a request goes is drawn from shares that change all the time.
type faults struct {
	front   *httptest.Server
	tr      *http.Transport
	proxies []string // their places in toxiproxy's API
	api     *http.Client
	t       *testing.T

	mu      sync.Mutex
	rng     *rand.Rand
	left    int       // requests until shares are drawn anew
	shares  []float64 // of soakWays
	counted []int64
}

// soakWay is one way of a request.
type soakWay struct {
	name  string
	share float64        // of the requests on average, in proportion
	toxic map[string]any // of the proxy that it goes through
	front func(f *faults, w http.ResponseWriter, r *http.Request)
	after func(r *rand.Rand) int // bytes until the body goes no further
	stall bool                   // it hangs then, else it ends
}

func toxic(kind string, attributes map[string]any) map[string]any {
	return map[string]any{"type": kind, "stream": "downstream", "attributes": attributes}
}

var soakWays = []soakWay{
	{name: "slow", share: 6, toxic: toxic("bandwidth", map[string]any{"rate": 20_000})},
	{name: "late", share: 6, toxic: toxic("latency", map[string]any{"latency": 20, "jitter": 15})},
	{name: "in slices", share: 3, toxic: toxic("slicer", map[string]any{"average_size": 5000, "size_variation": 3000, "delay": 10})},
	{name: "reset", share: 1, toxic: toxic("reset_peer", map[string]any{"timeout": 50})},
	{name: "closed after 100 KB", share: 1, toxic: toxic("limit_data", map[string]any{"bytes": 100_000})},
	{name: "closed after 3 MB", share: 1, toxic: toxic("limit_data", map[string]any{"bytes": 3_000_000})},
	{name: "never answered", share: 0.3, toxic: toxic("timeout", map[string]any{"timeout": 0})},
	{name: "stalls", share: 0.5, after: func(r *rand.Rand) int { return r.IntN(2 << 20) }, stall: true},
	{name: "ends early", share: 1, after: func(r *rand.Rand) int { return r.IntN(2 << 20) }},
	{name: "503", share: 1, front: (*faults).refuse},
}

func newFaults(t *testing.T, toxiproxy, server string) *faults {
	t.Helper()
	f := &faults{
		t: t, tr: &http.Transport{MaxIdleConnsPerHost: 64}, api: &http.Client{Transport: &http.Transport{}},
		rng: rand.New(rand.NewPCG(3, 4)), shares: make([]float64, len(soakWays)), counted: make([]int64, len(soakWays)),
	}
	host := strings.TrimPrefix(server, "http://")
	var passes []*httputil.ReverseProxy
	for _, way := range soakWays {
		to := host
		if way.toxic != nil {
			name := "soak-" + crand.Text()
			var made struct{ Listen string }
			f.call(http.MethodPost, toxiproxy+"/proxies", map[string]any{"name": name, "listen": "127.0.0.1:0", "upstream": host}, &made)
			f.proxies = append(f.proxies, toxiproxy+"/proxies/"+name)
			f.call(http.MethodPost, toxiproxy+"/proxies/"+name+"/toxics", way.toxic, nil)
			to = made.Listen
		}
		passes = append(passes, f.pass(to, &way))
	}
	f.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := f.draw()
		if soakWays[i].front != nil {
			soakWays[i].front(f, w, r)
			return
		}
		passes[i].ServeHTTP(w, r)
	}))
	return f
}

// pass makes a proxy for one way.
func (f *faults) pass(to string, way *soakWay) *httputil.ReverseProxy {
	p := &httputil.ReverseProxy{
		// The host that was signed for stays in its header.
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", to, r.In.Host },
		Transport: f.tr,
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	if way.after != nil {
		p.ModifyResponse = func(a *http.Response) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			a.Body = &faultyBody{ReadCloser: a.Body, ctx: a.Request.Context(), left: way.after(f.rng), stall: way.stall}
			return nil
		}
	}
	return p
}

// faultyBody stalls or ends in the middle.
type faultyBody struct {
	io.ReadCloser
	ctx   context.Context
	left  int
	stall bool
}

func (b *faultyBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		if b.stall {
			<-b.ctx.Done()
		}
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (f *faults) refuse(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
}

// draw says which way the next request goes.
func (f *faults) draw() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		f.left = 20 + f.rng.IntN(100)
		for i := range soakWays {
			f.shares[i] = soakWays[i].share * f.rng.ExpFloat64()
		}
	}
	f.left--
	var sum float64
	for _, s := range f.shares {
		sum += s
	}
	at, way := f.rng.Float64()*sum, 0
	for way < len(f.shares)-1 && at >= f.shares[way] {
		at -= f.shares[way]
		way++
	}
	f.counted[way]++
	return way
}

func (f *faults) close() {
	f.front.CloseClientConnections()
	f.front.Close()
	f.tr.CloseIdleConnections()
	for _, p := range f.proxies {
		f.call(http.MethodDelete, p, nil, nil)
	}
	f.api.CloseIdleConnections()
}

// call speaks to toxiproxy's API, which is JSON over HTTP.
func (f *faults) call(method, address string, in, out any) {
	body, err := json.Marshal(in)
	if err != nil {
		f.t.Error(err)
		return
	}
	r, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return
	}
	a, err := f.api.Do(r)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(a.Body)
	if out != nil {
		err = errors.Join(err, json.Unmarshal(answer, out))
	}
	if err != nil || a.StatusCode >= 300 {
		f.t.Errorf("%s %s: %s %s %v", method, path.Base(address), a.Status, answer, err)
	}
}

// soakResident returns the bytes of memory that the process has, 0 where that
// cannot be told.
func soakResident(t *testing.T) int64 {
	if runtime.GOOS != "linux" {
		return 0
	}
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(raw))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// soakHeap returns the bytes that are in use when nothing is done.
func soakHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools had kept
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
