package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
	"shardtool/reader/store/s3"
	"shardtool/reader/store/stores"
	"shardtool/shard"
)

// remoteDoctor checks what is behind a network, by requests that a reader would
// make too, watched on their way.
type remoteDoctor struct {
	*doctor
	options stores.Options
	st      *stores.Stores
	tap     tap
	found   []store.Entry // shards, the largest first
}

func newRemoteDoctor(d *doctor) *remoteDoctor {
	r := &remoteDoctor{doctor: d}
	o, _ := remoteOptions(d.c.Context) // was read before without an error
	r.options = *o
	r.options.CacheDir, r.options.Attempts, r.options.Wrap = "", 4, r.tap.wrap
	if !d.c.IsSet("stall-timeout") {
		r.options.Stall = 10 * time.Second
	}
	r.st = stores.New(&r.options)
	return r
}

func (d *remoteDoctor) s3() bool { return strings.HasPrefix(d.pattern, s3.Scheme) }

func (d *remoteDoctor) run(ctx context.Context) error {
	defer d.st.Close()
	seen, lookErr := d.look(ctx, d.st)
	x := d.tap.since()
	reached, err := d.connection(x, lookErr)
	if err != nil || !reached && len(x) > 0 {
		return err
	}
	steps := []func(context.Context) (bool, error){
		func(context.Context) (bool, error) { return true, d.clock(x) },
		d.credentials,
		func(context.Context) (bool, error) { return true, d.region(x) },
		func(ctx context.Context) (bool, error) { return d.access(ctx, seen, lookErr) },
		d.ranges,
		func(ctx context.Context) (bool, error) { return true, d.match(ctx) },
		func(ctx context.Context) (bool, error) { return true, d.checksums(ctx) },
		d.latency,
		d.bandwidth,
	}
	if !reached { // there was no request, and the error says why
		steps = []func(context.Context) (bool, error){
			func(ctx context.Context) (bool, error) { return d.access(ctx, seen, lookErr) },
		}
	}
	for _, step := range steps {
		if further, err := step(ctx); err != nil || !further {
			return err
		}
	}
	return nil
}

// seen is what a pattern leads to.
type seen struct {
	shards  []store.Entry
	others  int // objects that are no shards by their names
	indexed int // shards that have an index beside them
	listed  bool
	more    bool // than were looked at
}

// look finds what the pattern leads to.
func (d *remoteDoctor) look(ctx context.Context, st store.Store) (*seen, error) {
	name := d.pattern
	if strings.ContainsAny(name, "{}") || d.s3() && strings.ContainsAny(name, "*?[") {
		return d.expand(ctx, st)
	}
	if !d.s3() {
		e, err := store.Stat(ctx, st, name)
		return &seen{shards: []store.Entry{e}}, err
	}
	_, key, _ := strings.Cut(strings.TrimPrefix(name, s3.Scheme), "/")
	if key != "" && !strings.HasSuffix(key, "/") {
		e, err := store.Stat(ctx, st, name)
		if err == nil || !errors.Is(err, format.ErrNotFound) {
			return &seen{shards: []store.Entry{e}}, err
		}
	}
	s, err := list(ctx, st, name)
	if err == nil && len(s.shards) == 0 {
		err = format.Errorf(format.ErrNotFound, format.In(name), "no object begins so")
	}
	return s, err
}

// list looks at the objects under a prefix.
func list(ctx context.Context, st store.Store, prefix string) (*seen, error) {
	const most = 100_000
	s := &seen{listed: true}
	names := make(map[string]bool)
	var others []store.Entry
	for e, err := range st.List(ctx, prefix) {
		if err != nil {
			return s, err
		}
		if len(names) == most {
			s.more = true
			break
		}
		names[e.Name] = true
		if reader.FormatOf(e.Name) == reader.AutoFormat {
			others = append(others, e)
			continue
		}
		s.shards = append(s.shards, e)
	}
	for _, e := range s.shards {
		if names[e.Name+shard.SidecarSuffix] {
			s.indexed++
		}
	}
	if s.others = len(others) - s.indexed; len(s.shards) == 0 {
		s.shards, s.others = others, 0
	}
	return s, nil
}

// expand looks at the shards of a pattern, of which not all are asked about.
func (d *remoteDoctor) expand(ctx context.Context, st store.Store) (*seen, error) {
	const most = 32
	names, err := store.Expand(ctx, st, d.pattern)
	if err != nil {
		return &seen{}, err
	}
	s := &seen{more: len(names) > most}
	names = names[:min(most, len(names))]
	s.shards = make([]store.Entry, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, name := range names {
		g.Go(func() (err error) {
			s.shards[i], err = store.Stat(ctx, st, name)
			return err
		})
	}
	return s, g.Wait()
}

// connection says what was connected to, and why not. It returns whether any
// request was answered.
func (d *remoteDoctor) connection(all []*exchange, lookErr error) (bool, error) {
	if len(all) == 0 {
		return false, nil
	}
	x := all[0]
	answered := slices.IndexFunc(all, func(x *exchange) bool { return x.status != 0 })
	if answered >= 0 {
		x = all[answered]
	}
	if err := d.proxy(x); err != nil {
		return false, err
	}
	if answered < 0 {
		err := lookErr
		if err == nil {
			err = x.err
		}
		return false, d.fail("connection", connectionHint(x), err)
	}
	text := x.url.Host
	if x.addresses > 1 {
		text += fmt.Sprintf(" (%d addresses)", x.addresses)
	}
	switch {
	case x.tls != 0:
		text += ", " + tls.VersionName(x.tls)
	case x.url.Scheme == "http":
		text += ", http without TLS"
	}
	if !x.reused && x.connected > 0 {
		text += fmt.Sprintf(", connected in %s", shortly(x.connected))
	}
	return true, d.ok("connection", "%s", text)
}

func connectionHint(x *exchange) string {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var timeout net.Error
	switch err := x.err; {
	case x.proxy != nil:
		return "the proxy of the environment was used: check it, or name the host in NO_PROXY"
	case errors.As(err, &dns):
		return "the name does not resolve: check --endpoint-url, the bucket's name, the VPN and the name servers"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: check host and port"
	case errors.As(err, &cert):
		return "the certificate is not trusted: AWS_CA_BUNDLE or SSL_CERT_FILE names a file of others; check this machine's clock"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer: a firewall, a route or a proxy that is needed (HTTPS_PROXY)"
	case x.url.Scheme == "https":
		return "does the server speak TLS on this port?"
	}
	return ""
}

func (d *remoteDoctor) proxy(x *exchange) error {
	if x.proxy == nil {
		return nil
	}
	return d.warn("proxy", "if it is not needed, name the host in NO_PROXY: a proxy costs time and may cut long answers",
		"requests go through %s", x.proxy.Host)
}

// maxSkew is what a clock may be off without a word; AWS refuses 15 minutes.
const maxSkew = 5 * time.Minute

func (d *remoteDoctor) clock(all []*exchange) error {
	for _, x := range all {
		date, err := http.ParseTime(x.header.Get("Date"))
		if err != nil {
			continue
		}
		off := x.sent.Add(x.came).Sub(date).Round(time.Second)
		switch {
		case off > maxSkew:
			return d.warn("clock", "set it: signatures are refused from 15 minutes on", "this machine's clock is %v ahead of the server's", off)
		case off < -maxSkew:
			return d.warn("clock", "set it: signatures are refused from 15 minutes on", "this machine's clock is %v behind the server's", -off)
		case off.Abs() <= 2*time.Second:
			return d.ok("clock", "as the server's")
		}
		return d.ok("clock", "%v from the server's", off.Abs())
	}
	return nil
}

// credentials says where they are from, and whether it goes without.
func (d *remoteDoctor) credentials(ctx context.Context) (bool, error) {
	if !d.s3() {
		return true, d.address()
	}
	signer, err := d.st.S3().Signer(ctx)
	switch {
	case err != nil:
		return false, d.fail("credentials", "", err)
	case signer.Source == "":
		return true, d.ok("credentials", "none: requests are not signed (--no-sign-request)")
	}
	text := "from " + signer.Source
	if left := time.Until(signer.Expires); !signer.Expires.IsZero() {
		text += ", for " + left.Round(time.Minute).String()
	}
	if d.anonymous(ctx) {
		text += "; it goes without them too (--no-sign-request)"
	}
	return true, d.ok("credentials", "%s", text)
}

// anonymous reports whether the same is open to everybody.
func (d *remoteDoctor) anonymous(ctx context.Context) bool {
	o := d.options
	o.NoSign, o.Attempts, o.Wrap = true, 1, nil
	st := stores.New(&o)
	defer st.Close()
	name := d.pattern
	if i := strings.IndexAny(name, "*?[{"); i >= 0 {
		name = name[:i]
	}
	for _, err := range st.List(ctx, name) {
		if err == nil {
			return true
		}
		break
	}
	_, err := store.Stat(ctx, st, name)
	return err == nil
}

// address says what an address brings along: a signature, a password or
// nothing.
func (d *remoteDoctor) address() error {
	u, err := url.Parse(d.pattern)
	if err != nil {
		return nil // a pattern
	}
	q := u.Query()
	switch {
	case q.Has("X-Amz-Signature"):
		begun, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
		seconds, err2 := strconv.Atoi(q.Get("X-Amz-Expires"))
		if err != nil || err2 != nil {
			return d.ok("credentials", "a signature in the address")
		}
		left := time.Until(begun.Add(time.Duration(seconds) * time.Second)).Round(time.Minute)
		if left < time.Hour {
			return d.warn("credentials", "sign it for longer than the run takes", "a signature in the address, which holds for %v", max(left, 0))
		}
		return d.ok("credentials", "a signature in the address, which holds for %v", left)
	case u.User != nil:
		return d.ok("credentials", "user and password in the address")
	}
	return d.ok("credentials", "none in the address")
}

func (d *remoteDoctor) region(all []*exchange) error {
	if !d.s3() {
		return nil
	}
	asked, theirs := "", ""
	for _, x := range all {
		if asked == "" {
			asked = x.region
		}
		theirs = cmp.Or(x.header.Get("X-Amz-Bucket-Region"), theirs)
		if x.status < 300 {
			theirs = cmp.Or(theirs, x.region)
		}
	}
	switch {
	case asked != "" && theirs != "" && asked != theirs:
		return d.warn("region", "--region "+theirs+" saves each run a request", "the bucket is in %s, and %s was asked first", theirs, asked)
	case theirs != "":
		return d.ok("region", "%s", theirs)
	}
	return nil
}

// access says what was found.
func (d *remoteDoctor) access(ctx context.Context, s *seen, err error) (bool, error) {
	if err != nil {
		hint := ""
		switch {
		case errors.Is(err, format.ErrNotFound):
			hint = "check bucket, key and --endpoint-url; a key is taken exactly as it is written"
		case errors.Is(err, format.ErrDenied) && d.s3() && !d.options.NoSign && d.anonymous(ctx):
			hint = "it goes without credentials: --no-sign-request"
		}
		return false, d.fail("access", hint, err)
	}
	if err := d.shards(s.shards, s.others, s.more, true); err != nil {
		return false, err
	}
	switch n := len(s.shards); {
	case !s.listed:
	case s.indexed == n:
		err = d.ok("index", "each shard has an index beside it")
	default:
		err = d.warn("index", "shardtool index makes them: counts, exact resume and global shuffling need them",
			"%d of %s have an index beside them", s.indexed, counted(n, "shard"))
	}
	d.found = slices.Clone(s.shards)
	slices.SortStableFunc(d.found, func(a, b store.Entry) int { return cmp.Compare(b.Size, a.Size) })
	d.found = d.found[:min(len(d.found), 16)]
	for len(d.found) > 0 && d.found[len(d.found)-1].Size <= 0 {
		d.found = d.found[:len(d.found)-1]
	}
	if len(d.found) == 0 && err == nil {
		return false, d.warn("ranges", "", "every object is empty or of unknown size: nothing to read")
	}
	return true, err
}

// byteOf reads one byte of the middle of an object and returns the exchanges
// of that.
func (d *remoteDoctor) byteOf(ctx context.Context, e store.Entry) ([]*exchange, error) {
	d.tap.since()
	o, err := store.OpenEntry(ctx, d.st, e)
	if err != nil {
		return d.tap.since(), err
	}
	_, err = o.ReadAt(ctx, make([]byte, 1), e.Size/2)
	if err == io.EOF {
		err = nil
	}
	return d.tap.since(), errors.Join(err, o.Close())
}

// ranges sees that the server gives the part that was asked for.
func (d *remoteDoctor) ranges(ctx context.Context) (bool, error) {
	e := d.found[0]
	all, err := d.byteOf(ctx, e)
	want := fmt.Sprintf("bytes %d-%d/%d", e.Size/2, e.Size/2, e.Size)
	for _, x := range all {
		if x.status == http.StatusPartialContent && x.header.Get("Content-Range") == want && err == nil {
			return true, d.ok("ranges", "http 206 with the range that was asked for")
		}
	}
	const hint = "shards can only be read in order, and a cut begins anew: a proxy, a compressing server or a CDN may be in the way"
	switch {
	case err == nil && len(all) > 0 && e.Size == 1:
		return true, d.warn("ranges", "", "an object of one byte shows nothing")
	case err == nil:
		err = format.Errorf(format.ErrUnsupported, format.In(e.Name), "the server does not answer a range with http 206 and %q", want)
	case errors.Is(err, format.ErrUnsupported):
	default:
		return false, d.fail("ranges", stallHint(err), err)
	}
	return false, d.fail("ranges", hint, err)
}

func stallHint(err error) string {
	if strings.Contains(err.Error(), "no byte came") {
		return "small answers come and larger ones stall: a path with a smaller MTU, where packets that say so are dropped"
	}
	return hintOf(err)
}

// match sees that the server refuses bytes of another version.
func (d *remoteDoctor) match(ctx context.Context) error {
	e := d.found[0]
	if !strings.HasPrefix(e.Version, `"`) {
		return d.warn("if-match", "do not replace objects that are being read", "the server sends no strong ETag, so a replaced object is noticed by its size or date at most")
	}
	e.Version = `"00000000000000000000000000000000"`
	all, err := d.byteOf(ctx, e)
	for _, x := range all {
		if x.status == http.StatusPreconditionFailed {
			return d.ok("if-match", "http 412 to another version: an object that is replaced while it is read is noticed")
		}
	}
	if err == nil || errors.Is(err, format.ErrStale) {
		err = format.Errorf(format.ErrUnsupported, format.In(e.Name), "the server gives bytes although If-Match names another version")
		return d.fail("if-match", "do not replace objects that are being read", err)
	}
	return d.fail("if-match", hintOf(err), err)
}

func (d *remoteDoctor) checksums(ctx context.Context) error {
	d.tap.since()
	if _, err := store.Stat(ctx, d.st, d.found[0].Name); err != nil {
		return d.fail("checksums", hintOf(err), err)
	}
	for _, x := range d.tap.since() {
		for key := range x.header {
			name, ok := strings.CutPrefix(strings.ToLower(key), "x-amz-checksum-")
			if !ok || name == "type" || name == "algorithm" {
				continue
			}
			if strings.EqualFold(x.header.Get("X-Amz-Checksum-Type"), "COMPOSITE") || strings.Contains(x.header.Get(key), "-") {
				return d.ok("checksums", "%s, of the parts of an upload, which says nothing about the whole", name)
			}
			return d.ok("checksums", "%s of the full object, checked when a shard was read whole", name)
		}
	}
	return d.ok("checksums", "none are offered; records of a TFRecord and compressed shards have their own")
}

// latency is the time to the first byte.
func (d *remoteDoctor) latency(ctx context.Context) (bool, error) {
	const times = 5
	var waits []time.Duration
	for range times {
		all, err := d.byteOf(ctx, d.found[0])
		if err != nil {
			return false, d.fail("latency", stallHint(err), err)
		}
		for _, x := range all {
			if x.came > 0 {
				waits = append(waits, x.came)
			}
		}
	}
	if len(waits) == 0 {
		return true, nil
	}
	slices.Sort(waits)
	median := waits[len(waits)/2]
	if median > 150*time.Millisecond {
		return true, d.warn("latency", "the data is far: keep it in the region of the machines, or --cache it",
			"%s to the first byte (median of %d)", shortly(median), len(waits))
	}
	return true, d.ok("latency", "%s to the first byte (median of %d)", shortly(median), len(waits))
}

func shortly(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// rate is what so many connections brought.
type rate struct {
	connections int
	mbPerS      float64
}

// bandwidth reads with more and more connections.
func (d *remoteDoctor) bandwidth(ctx context.Context) (bool, error) {
	most := 16
	if d.c.IsSet("connections") {
		most = d.options.Connections
	}
	var counts []int
	for n := 1; n < most; n *= 2 {
		counts = append(counts, n)
	}
	counts = append(counts, most)
	var rates []rate
	for _, n := range counts {
		before := d.st.Remote().Stats().Throttled
		r, bytes, err := d.measure(ctx, n, d.bytes/int64(len(counts)))
		if err != nil {
			return false, d.fail("bandwidth", stallHint(err), err)
		}
		if bytes == 0 {
			return false, d.warn("bandwidth", "give it a longer --duration; if that changes nothing, "+stallHint(errors.New("no byte came")),
				"%s: no byte came within %v", counted(n, "connection"), d.duration)
		}
		row := doctorRow{Check: "bandwidth", Status: fine, Connections: n, MBPerS: rounded(r.mbPerS),
			Detail: fmt.Sprintf("%s: %.1f MB/s, %.1f each", counted(n, "connection"), r.mbPerS, r.mbPerS/float64(n))}
		throttled := d.st.Remote().Stats().Throttled - before
		if throttled > 0 {
			row.Status = warn
			row.Detail += fmt.Sprintf("; the server asked %d times for fewer requests", throttled)
			row.Hint = "fewer connections, or keys under more prefixes"
		}
		if err := d.say(row); err != nil {
			return false, err
		}
		rates = append(rates, r)
		if throttled > 0 {
			break
		}
	}
	return false, d.conclude(ctx, rates)
}

// measure reads ranges with n connections, for as long as the run may or until
// budget bytes have been asked for.
func (d *remoteDoctor) measure(ctx context.Context, n int, budget int64) (rate, int64, error) {
	const piece = 8 << 20
	limited, cancel := context.WithTimeout(ctx, d.duration)
	defer cancel()
	objects := make([]store.Object, len(d.found))
	for i, e := range d.found {
		o, err := store.OpenEntry(limited, d.st, e)
		if err != nil {
			return rate{}, 0, err
		}
		defer o.Close()
		objects[i] = o
	}
	var next, asked atomic.Int64
	var mu sync.Mutex
	var fault error
	before, begun := d.tap.bytes.Load(), time.Now()
	var readers sync.WaitGroup
	for range n {
		readers.Go(func() {
			buf := make([]byte, min(piece, d.found[0].Size))
			for limited.Err() == nil {
				k := next.Add(1) - 1
				i := int(k % int64(len(objects)))
				size := d.found[i].Size
				off := (k / int64(len(objects))) * piece % size
				want := min(piece, size-off)
				if asked.Add(want) > budget && k >= int64(n) {
					return
				}
				if _, err := objects[i].ReadAt(limited, buf[:want], off); err != nil && limited.Err() == nil {
					mu.Lock()
					if fault == nil {
						fault = err
					}
					mu.Unlock()
					cancel()
				}
			}
		})
	}
	readers.Wait()
	took := time.Since(begun)
	bytes := d.tap.bytes.Load() - before
	if err := ctx.Err(); err != nil {
		return rate{}, 0, err
	}
	return rate{n, float64(bytes) / 1e6 / took.Seconds()}, bytes, fault
}

// conclude says how many connections are worth it: the fewest that bring 0.9 of
// what any number did.
func (d *remoteDoctor) conclude(ctx context.Context, rates []rate) error {
	best := slices.MaxFunc(rates, func(a, b rate) int { return cmp.Compare(a.mbPerS, b.mbPerS) })
	enough := rates[slices.IndexFunc(rates, func(r rate) bool { return r.mbPerS >= 0.9*best.mbPerS })]
	sample, err := sampleSize(ctx, d.st, d.found[0].Name)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	hint := fmt.Sprintf("--connections %d", enough.connections)
	text := fmt.Sprintf("%s are enough: %.1f MB/s", counted(enough.connections, "connection"), enough.mbPerS)
	if enough.connections == 1 {
		text = fmt.Sprintf("1 connection is enough: %.1f MB/s", enough.mbPerS)
	}
	if last := rates[len(rates)-1]; len(rates) > 1 && enough == last {
		text = fmt.Sprintf("the rate still grows at %s: %.1f MB/s", counted(last.connections, "connection"), last.mbPerS)
		hint = fmt.Sprintf("measure more: --connections %d", 4*last.connections)
	}
	return d.advise(text, enough.connections, enough.mbPerS, sample, "first", hint)
}
