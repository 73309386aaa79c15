// Command s3 measures how much of a network to an S3 server is used: plain
// parallel GETs, this project's store and loader, and other loaders, through the
// same slow connections, in turns. benchmarks/s3.sh runs it.
//
//	every row ─ at most 4 connections ─▶ toxiproxy ─▶ versitygw
//	                                     each 50 MB/s, 20 ms until an answer begins
//
// A row reads the same objects once, from the first request to the last byte,
// by a client that has no connection yet. Its rate is that of the objects'
// bytes. The rows of the loader and of peers deliver every sample, and are
// checked to.
//
// How many connections a row had at a time is looked at and printed beside its
// rate, for not every peer can be held to so few.
//
// What the proxy does: its bandwidth toxic lets the bytes of one connection pass
// at a rate, whatever the others do; its latency toxic delays them on their way
// to the client by a time, and so the begin of each answer, but does not lower
// the rate. Requests pass undelayed, and connecting, which the proxy answers
// itself, takes no time either: asking once more on a connection costs 20 ms.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"shardtool/format"
	"shardtool/format/tarshard"
	"shardtool/format/tfexample"
	"shardtool/format/tfrecord"
	"shardtool/loader"
	"shardtool/reader"
	"shardtool/reader/order"
	"shardtool/reader/store"
	"shardtool/reader/store/stores"
)

func main() {
	var b bench
	flag.IntVar(&b.rounds, "rounds", 5, "how often each row is measured")
	flag.IntVar(&b.shards, "shards", 24, "objects of each format")
	flag.Int64Var(&b.size, "size", 64e6, "`BYTES` of an object, about")
	flag.IntVar(&b.sample, "sample", 100_000, "`BYTES` of a sample")
	flag.IntVar(&b.connections, "connections", 4, "at a time")
	flag.IntVar(&b.rate, "rate", 50_000, "of a connection, in `KB/s`; 0: any")
	flag.IntVar(&b.latency, "latency", 20, "until an answer begins, in `ms`")
	flag.StringVar(&b.only, "only", "", "rows whose name holds one of these `WORDS`, joined by commas, besides the first")
	flag.Func("peer", "a further row, as `NAME=COMMAND`: the command is given the name of a JSON file (see input) and prints one line of JSON (see output)", b.addPeer)
	flag.Parse()
	if err := b.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "s3:", err)
		os.Exit(1)
	}
}

type bench struct {
	rounds, shards, sample, connections, rate, latency int
	size                                               int64
	only                                               string
	peers                                              []row

	server, toxiproxy string // their addresses
	endpoint          string // of the way through the proxy
	tars, records     set
}

// set is shards of one format.
type set struct {
	names   []string // s3://...
	signed  []string // their addresses through the proxy, good for hours
	sizes   []int64
	bytes   int64 // of the objects
	samples int64
	payload int64 // bytes of the samples
}

// row is one way to read.
type row struct {
	name  string
	floor bool
	// read reads a set once and returns which; seconds says how long that took,
	// where a row measures it itself.
	read func(ctx context.Context, b *bench) (of *set, seconds float64, err error)

	rates []float64 // MB/s, of each round
	most  int       // connections that were seen at a time
	err   error
}

var rows = []row{
	{name: "GET, whole objects", floor: true, read: gets(math.MaxInt64)},
	{name: "GET, ranges of 8 MiB", floor: true, read: gets(8 << 20)},
	{name: "GET, ranges of 32 MiB", floor: true, read: gets(32 << 20)},
	{name: "streams of the store", read: streams},
	{name: "loader, tar", read: loads(order.None, func(b *bench) *set { return &b.tars })},
	{name: "loader, tar, shuffled by stream", read: loads(order.Stream(4, 1000), func(b *bench) *set { return &b.tars })},
	{name: "loader, TFRecord", read: loads(order.None, func(b *bench) *set { return &b.records })},
}

func (b *bench) run(ctx context.Context) error {
	b.server, b.toxiproxy = os.Getenv("SHARDTOOL_S3_ENDPOINT"), os.Getenv("SHARDTOOL_TOXIPROXY")
	if b.server == "" || b.toxiproxy == "" {
		return errors.New("SHARDTOOL_S3_ENDPOINT and SHARDTOOL_TOXIPROXY are not set: run it by benchmarks/s3.sh")
	}
	if err := b.proxy(); err != nil {
		return err
	}
	if err := b.make(ctx); err != nil {
		return err
	}
	all := append(slices.Clone(rows), b.peers...)
	all = slices.DeleteFunc(all, func(r row) bool { return !b.wanted(r.name) })
	for round := range b.rounds {
		for i := range all {
			r := &all[(i+round)%len(all)]
			if r.err == nil {
				r.measure(ctx, b)
			}
		}
	}
	b.print(all)
	for _, r := range all {
		if r.err != nil && !slices.ContainsFunc(b.peers, func(p row) bool { return p.name == r.name }) {
			return fmt.Errorf("%s: %w", r.name, r.err)
		}
	}
	return nil
}

// wanted reports whether a row is measured: what the others are compared with
// is in any case.
func (b *bench) wanted(name string) bool {
	return b.only == "" || name == rows[0].name ||
		slices.ContainsFunc(strings.Split(b.only, ","), func(word string) bool { return strings.Contains(name, word) })
}

func (r *row) measure(ctx context.Context, b *bench) {
	seen := b.watch()
	began := time.Now()
	of, seconds, err := r.read(ctx, b)
	r.most = max(r.most, seen())
	if err != nil {
		r.err = err
		fmt.Fprintf(os.Stderr, "%s: %v\n", r.name, err)
		return
	}
	if seconds == 0 {
		seconds = time.Since(began).Seconds()
	}
	r.rates = append(r.rates, float64(of.bytes)/seconds/1e6)
	fmt.Fprintf(os.Stderr, "%s: %.1f MB/s\n", r.name, r.rates[len(r.rates)-1])
}

// print writes the table. The floor is the plain way with the best median.
func (b *bench) print(all []row) {
	var floor *row
	for i := range all {
		if r := &all[i]; r.floor && r.err == nil && (floor == nil || median(r.rates) > median(floor.rates)) {
			floor = r
		}
	}
	fmt.Printf("%d objects of %.0f MB, samples of %d bytes; %d connections of %.0f MB/s, %d ms; %d rounds\n\n",
		b.shards, float64(b.tars.bytes)/float64(b.shards)/1e6, b.sample, b.connections, float64(b.rate)/1e3, b.latency, b.rounds)
	fmt.Printf("| row | MB/s: median (least to most) | of the fastest GETs in the same round | connections |\n|---|---|---|---|\n")
	for i := range all {
		r := &all[i]
		if r.err != nil {
			fmt.Printf("| %s | absent: %v | | |\n", r.name, r.err)
			continue
		}
		var ratios []float64
		for k, rate := range r.rates {
			if floor != nil && k < len(floor.rates) {
				ratios = append(ratios, rate/floor.rates[k])
			}
		}
		fmt.Printf("| %s | %s | %s | %d |\n", r.name, spread("%.0f", r.rates), spread("%.3f", ratios), r.most)
	}
}

// watch looks every now and then how many connections there are to the proxy,
// where the system tells; seen ends that and returns the most.
func (b *bench) watch() (seen func() int) {
	_, port, _ := strings.Cut(strings.TrimPrefix(b.endpoint, "http://"), ":")
	n, _ := strconv.Atoi(port)
	suffix := fmt.Sprintf(":%04X", n)
	ctx, cancel := context.WithCancel(context.Background())
	most, done := 0, make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.Tick(50 * time.Millisecond); ctx.Err() == nil; <-tick {
			for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
				table, err := os.ReadFile(file)
				if err != nil {
					continue
				}
				now := 0
				for line := range strings.Lines(string(table)) {
					// Number, local and remote address, state: 01 is an open one.
					if f := strings.Fields(line); len(f) > 3 && f[3] == "01" && strings.HasSuffix(f[2], suffix) {
						now++
					}
				}
				most = max(most, now)
			}
		}
	}()
	return func() int {
		cancel()
		<-done
		return most
	}
}

func spread(form string, v []float64) string {
	if len(v) == 0 {
		return ""
	}
	return fmt.Sprintf(form+" ("+form+" to "+form+")", median(v), slices.Min(v), slices.Max(v))
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// --- rows ---

// gets reads the objects by plain requests, so many at a time, each of at most
// so many bytes.
func gets(most int64) func(context.Context, *bench) (*set, float64, error) {
	return func(ctx context.Context, b *bench) (*set, float64, error) {
		tr := &http.Transport{MaxConnsPerHost: b.connections, MaxIdleConnsPerHost: b.connections, DisableCompression: true}
		defer tr.CloseIdleConnections()
		client := &http.Client{Transport: tr}
		type piece struct {
			address string
			off, n  int64
		}
		var pieces []piece
		for i, address := range b.tars.signed {
			for off := int64(0); off < b.tars.sizes[i]; off += most {
				pieces = append(pieces, piece{address, off, min(most, b.tars.sizes[i]-off)})
				if most == math.MaxInt64 {
					break
				}
			}
		}
		return &b.tars, 0, eachOf(ctx, b.connections, pieces, func(ctx context.Context, p piece) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address, nil)
			if err != nil {
				return err
			}
			if most != math.MaxInt64 {
				r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", p.off, p.off+p.n-1))
			}
			a, err := client.Do(r)
			if err != nil {
				return err
			}
			defer a.Body.Close()
			n, err := readAll(a.Body)
			if err == nil && (n != p.n || a.StatusCode >= 300) {
				err = fmt.Errorf("%s, %d bytes of %d", a.Status, n, p.n)
			}
			return err
		})
	}
}

func readAll(r io.Reader) (n int64, err error) {
	p := make([]byte, 1<<20)
	for {
		k, err := r.Read(p)
		n += int64(k)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// eachOf does something to each of a list, in order, by so many goroutines.
func eachOf[T any](ctx context.Context, at int, list []T, do func(context.Context, T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(at)
	for _, v := range list {
		g.Go(func() error { return do(ctx, v) })
	}
	return g.Wait()
}

func (b *bench) stores(endpoint string) *stores.Stores {
	return stores.New(&stores.Options{Endpoint: endpoint, Connections: b.connections})
}

// streams reads as many objects at a time as there are connections, each from
// its first byte to its last.
func streams(ctx context.Context, b *bench) (*set, float64, error) {
	st := b.stores(b.endpoint)
	defer st.Close()
	var left []int
	for i := range b.tars.names {
		left = append(left, i)
	}
	return &b.tars, 0, eachOf(ctx, b.connections, left, func(ctx context.Context, i int) error {
		r, err := store.OpenStream(ctx, st, b.tars.names[i])
		if err != nil {
			return err
		}
		defer r.Close()
		n, err := readAll(r)
		if err == nil && n != b.tars.sizes[i] {
			err = fmt.Errorf("%d bytes of %d", n, b.tars.sizes[i])
		}
		return err
	})
}

// loads delivers batches of the samples' bytes.
func loads(shuffle order.Shuffle, of func(*bench) *set) func(context.Context, *bench) (*set, float64, error) {
	return func(ctx context.Context, b *bench) (*set, float64, error) {
		s := of(b)
		st := b.stores(b.endpoint)
		defer st.Close()
		ld, err := loader.New(ctx, reader.New(st, s.names, &reader.Options{CacheDir: "-"}), &loader.Options{
			Columns: []loader.Column{loader.Bytes("bin")}, GlobalBatch: 64, Shuffle: shuffle, Tail: order.TailKeep, World: 1,
		})
		if err != nil {
			return s, 0, err
		}
		defer ld.Close()
		var samples, payload int64
		for batch, err := range ld.Batches(ctx) {
			if err != nil {
				return s, 0, err
			}
			samples += int64(batch.Len())
			payload += int64(len(batch.Binary(0).Data))
			batch.Release()
		}
		return s, 0, s.check(samples, payload)
	}
}

func (s *set) check(samples, payload int64) error {
	if samples != s.samples || payload != s.payload {
		return fmt.Errorf("%d samples of %d bytes were delivered, there are %d of %d", samples, payload, s.samples, s.payload)
	}
	return nil
}

// input is what a peer is told, output what it prints. It takes the time
// itself, from its first request on, so that starting Python is not counted.
type input struct {
	Connections int      `json:"connections"`
	Endpoint    string   `json:"endpoint"`
	Tars        []string `json:"tars"`    // addresses that need no credentials
	Records     []string `json:"records"` // s3://..., with the credentials of the environment
}

type output struct {
	Of      string  `json:"of"` // tars or records
	Samples int64   `json:"samples"`
	Bytes   int64   `json:"bytes"` // of the samples
	Seconds float64 `json:"seconds"`
}

func (b *bench) addPeer(text string) error {
	name, command, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("NAME=COMMAND is wanted")
	}
	b.peers = append(b.peers, row{name: name, read: func(ctx context.Context, b *bench) (*set, float64, error) {
		return b.peer(ctx, strings.Fields(command))
	}})
	return nil
}

func (b *bench) peer(ctx context.Context, command []string) (*set, float64, error) {
	dir, err := os.MkdirTemp("", "s3peer")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(dir)
	told, err := json.Marshal(input{b.connections, b.endpoint, b.tars.signed, b.records.names})
	if err != nil {
		return nil, 0, err
	}
	file := filepath.Join(dir, "input.json")
	if err := os.WriteFile(file, told, 0o600); err != nil {
		return nil, 0, err
	}
	c := exec.CommandContext(ctx, command[0], append(command[1:], file)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	said, err := c.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, 0, fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	var out output
	lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &out); err != nil {
		return nil, 0, err
	}
	s := map[string]*set{"tars": &b.tars, "records": &b.records}[out.Of]
	if s == nil {
		return nil, 0, fmt.Errorf("it read %q", out.Of)
	}
	return s, out.Seconds, s.check(out.Samples, out.Bytes)
}

// --- the way there ---

// proxy makes the way through the proxy.
func (b *bench) proxy() error {
	name := "bench-" + rand.Text()
	var made struct{ Listen string }
	err := call(b.toxiproxy+"/proxies", map[string]any{"name": name, "listen": "127.0.0.1:0", "upstream": strings.TrimPrefix(b.server, "http://")}, &made)
	if err != nil {
		return err
	}
	b.endpoint = "http://" + made.Listen
	toxics := b.toxiproxy + "/proxies/" + name + "/toxics"
	if b.latency > 0 {
		err = call(toxics, map[string]any{"type": "latency", "stream": "downstream", "attributes": map[string]any{"latency": b.latency}}, nil)
	}
	if err == nil && b.rate > 0 {
		err = call(toxics, map[string]any{"type": "bandwidth", "stream": "downstream", "attributes": map[string]any{"rate": b.rate}}, nil)
	}
	return err
}

func call(address string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	a, err := http.Post(address, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode >= 300 {
		err = fmt.Errorf("toxiproxy: %s: %s", a.Status, answer)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(answer, out)
	}
	return err
}

// --- the objects ---

func (b *bench) make(ctx context.Context) error {
	bucket := "bench-" + strings.ToLower(rand.Text()[:16])
	if _, err := b.client(b.server).CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		return err
	}
	st := b.stores(b.server)
	defer st.Close()
	for _, of := range []struct {
		*set
		suffix string
		write  func(io.Writer, []byte, int64) error
	}{{&b.tars, "tar", writeTar}, {&b.records, "tfrecord", writeRecords}} {
		for i := range b.shards {
			key := fmt.Sprintf("train-%06d.%s", i, of.suffix)
			if err := b.object(ctx, st, of.set, bucket, key, of.write); err != nil {
				return err
			}
		}
	}
	return nil
}

// client is one of the SDK, for what a store does not do.
func (b *bench) client(endpoint string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &endpoint, UsePathStyle: true, Region: os.Getenv("AWS_REGION"),
		Credentials: credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
	})
}

func (b *bench) object(ctx context.Context, st *stores.Stores, s *set, bucket, key string, write func(io.Writer, []byte, int64) error) error {
	name := "s3://" + bucket + "/" + key
	sink, err := st.Create(ctx, name)
	if err != nil {
		return err
	}
	defer sink.Abort()
	payload := make([]byte, b.sample)
	if _, err := rand.Read(payload); err != nil {
		return err
	}
	samples := max(b.size/int64(b.sample), 1)
	if err := write(sink, payload, samples); err != nil {
		return err
	}
	if err := sink.Commit(); err != nil {
		return err
	}
	e, err := st.Stat(ctx, name)
	if err != nil {
		return err
	}
	signed, err := s3.NewPresignClient(b.client(b.endpoint)).PresignGetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key}, s3.WithPresignExpires(12*time.Hour))
	if err != nil {
		return err
	}
	s.names, s.signed, s.sizes = append(s.names, name), append(s.signed, signed.URL), append(s.sizes, e.Size)
	s.bytes += e.Size
	s.samples += samples
	s.payload += samples * int64(len(payload))
	return nil
}

func writeTar(to io.Writer, payload []byte, n int64) error {
	w := tarshard.NewWriter(to, nil)
	for i := range n {
		if err := w.WriteSample(&format.Sample{Key: fmt.Appendf(nil, "%08d", i), Fields: []format.Field{{Name: "bin", Data: payload}}}); err != nil {
			return err
		}
	}
	return w.Close()
}

func writeRecords(to io.Writer, payload []byte, n int64) error {
	w := tfrecord.NewWriter(to)
	var e tfexample.Builder
	e.AddBytes("bin", payload)
	record := e.AppendTo(nil)
	for range n {
		if err := w.Write(record); err != nil {
			return err
		}
	}
	return w.Flush()
}
