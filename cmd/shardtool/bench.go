package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"shardtool/bench"
	"shardtool/device"
	"shardtool/format"
	"shardtool/reader"
	"shardtool/reader/store"
)

func benchCommand() *cli.Command {
	return verb{
		Name:  "bench",
		Args:  "[IN...]",
		Usage: "measure how fast shards become batches, what limits it, and how much to echo",
		About: `Runs the loader over shards as training would: reads, shuffles, decodes, augments
and makes batches; after a warm-up it counts the batches that are finished within
the duration. Shards are read again as often as needed. Without paths it reads
photographs that come with the program.

Without --columns, pictures of the field jpg, jpeg, png, webp, gif, image/encoded
or image, or of --field, are decoded, cropped at random, flipped and normalised to
224x224. ` + columnsHelp + `

With --world it makes one rank's part of each batch. --upstream slows the store
down, as in 50MB/s,20ms: a rate for all reads together, and a latency for each
request. --step-time and --accelerator play an accelerator that takes so long for
a batch of this rank, or so many samples a second; R and the advice are for it.

With --echo E each sample is emitted E times; --keep says what is kept meanwhile,
and so what is done again for each: bytes are decoded again, decoded pictures
augmented anew. With --unit batch each batch is emitted E times as it is. --sweep
runs several E in three rounds, each in turn, and sets what is measured beside
what the law predicts; --plot draws it. --against compares with what --json
printed earlier, by the spread within each run. --profile writes PREFIX.cpu.pprof
and PREFIX.heap.pprof, for go tool pprof -http : PREFIX.cpu.pprof.`,
		Examples: []string{
			"shardtool bench",
			"shardtool bench --duration 20s --workers 8 train-{000..127}.tar",
			"shardtool bench --shuffle stream:8,4096 --world 8 --batch 1024 s3://bucket/train-*.tar",
			"shardtool bench --accelerator 2500/s --columns padded:input_ids:int64:512 tokens-*.tfrecord",
			"shardtool bench --upstream 6MB/s,20ms --step-time 100ms --keep decoded --sweep e=1,2,4,8 --plot echo.svg",
		},
		Flags: [][]cli.Flag{benchTrainingFlags(), {
			rankFlag(),
			&cli.StringFlag{Name: "field", Usage: "pictures are in the first `LIST` of fields that a sample has, by semicolons", DefaultText: "the usual names"},
			&cli.StringFlag{Name: "upstream", Usage: "slow the store down to a `LIMIT` such as 50MB/s,20ms"},
			&cli.DurationFlag{Name: "step-time", Usage: "play an accelerator whose step on a batch takes this `TIME`", DefaultText: "none"},
			&cli.StringFlag{Name: "accelerator", Usage: "play an accelerator of this `RATE` in samples a second, such as 2500/s"},
			&cli.StringFlag{Name: "device", Usage: "put batches to this `DEVICE`: host, or cuda:N where the program has it", Value: hostDevice},
			&cli.StringFlag{Name: "sweep", Usage: "run these `FACTORS` of the echo, such as e=1,2,4,8"},
			&cli.StringFlag{Name: "plot", Usage: "draw steps a second against the factor, and the time of each stage, to this `FILE` (SVG); without --sweep it runs e=1,2,4,8"},
			&cli.StringFlag{Name: "profile", Usage: "write `PREFIX`.cpu.pprof and PREFIX.heap.pprof"},
			&cli.StringFlag{Name: "against", Usage: "say what changed since this `FILE`, which --json printed"},
			&cli.DurationFlag{Name: "warmup", Usage: "before the measurement, or longer where more was fetched ahead", Value: time.Second},
			&cli.DurationFlag{Name: "duration", Usage: "of the measurement, after the warm-up; with --sweep of each factor in all rounds", Value: 5 * time.Second},
			choice("format", "what the shards are", "auto", "tar", "tfrecord"),
		}},
		Run: runBench,
	}.command()
}

// benchTrainingFlags are trainingFlags without the epochs, which have no end
// here.
func benchTrainingFlags() []cli.Flag {
	return slices.DeleteFunc(trainingFlags(), func(f cli.Flag) bool { return f.Names()[0] == "epochs" })
}

func runBench(c *call) error {
	c.ReportTo(c.String("plot"))
	o, err := c.benchOptions()
	if err != nil {
		return err
	}
	if o.Against, err = c.earlier(); err != nil {
		return err
	}
	outs, err := c.benchOutputs()
	defer outs.abort()
	if err != nil {
		return err
	}
	if o.Device, err = c.device(); err != nil {
		return err
	}
	if o.Device != nil {
		o.DeviceName = c.String("device")
	}
	report, err := outs.measure(c, o)
	var closed error
	if o.Device != nil {
		closed = o.Device.Close()
	}
	if err != nil {
		return errors.Join(err, closed)
	}
	if w := c.echoOfEvaluation(o.Load.Echo); w != "" {
		report.Warnings = append(report.Warnings, w)
	}
	// What was measured is not to be lost with a file that cannot be written.
	return errors.Join(c.printReport(report), outs.write(report), closed)
}

func (c *call) printReport(r *bench.Report) error {
	if c.JSON() {
		return c.Row(r)
	}
	return r.WriteText(c.out)
}

// benchOptions reads the flags but for those that name files and devices.
func (c *call) benchOptions() (*bench.Options, error) {
	load, err := c.training()
	if err != nil {
		return nil, err
	}
	o := &bench.Options{
		Load:     *load,
		Field:    c.String("field"),
		Duration: c.Duration("duration"),
		Warmup:   c.Duration("warmup"),
		StepTime: c.Duration("step-time"),
		Version:  version(),
	}
	if !c.IsSet("columns") {
		o.Load.Columns = nil // the field decides
	}
	switch {
	case c.IsSet("columns") && c.IsSet("field"):
		return nil, usageError("--field is for the pictures that are read without --columns")
	case o.Warmup <= 0:
		return nil, usageError("--warmup %v: more than nothing", o.Warmup)
	case o.Duration <= 0:
		return nil, usageError("--duration %v: more than nothing", o.Duration)
	case c.IsSet("step-time") && o.StepTime <= 0:
		return nil, usageError("--step-time %v: more than nothing", o.StepTime)
	case c.IsSet("step-time") && c.IsSet("accelerator"):
		return nil, usageError("--step-time and --accelerator say the same: give one of them")
	case c.String("device") != hostDevice && (c.IsSet("step-time") || c.IsSet("accelerator")):
		return nil, usageError("--device %s, and an accelerator that is played (--step-time, --accelerator): give one of them", c.String("device"))
	case c.IsSet("sweep") && c.IsSet("echo"):
		return nil, usageError("--sweep gives the factors of the echo, and --echo one: give one of them")
	}
	// An empty one is most likely a variable of the shell that is not set.
	for _, name := range []string{"plot", "profile", "against", "upstream", "accelerator"} {
		if c.IsSet(name) && c.String(name) == "" {
			return nil, usageError("--%s is empty", name)
		}
	}
	if prefix := c.String("profile"); isFolder(prefix) {
		return nil, usageError("--profile %s: a folder, and the names of the two files begin with it: add some letters", prefix)
	}
	if o.Accelerator, err = parseAccelerator(c.String("accelerator")); err != nil {
		return nil, err
	}
	if o.Sweep, err = c.sweep(); err != nil {
		return nil, err
	}
	if err := c.automatic(o); err != nil {
		return nil, err
	}
	if limit := c.String("upstream"); limit != "" {
		l, err := store.ParseLimit(limit)
		if err != nil {
			return nil, err
		}
		o.Upstream = &l
	}
	if c.Args().Present() {
		o.Dataset, err = c.dataset(&reader.Options{Format: word(c.String("format"), reader.AutoFormat, reader.Tar, reader.TFRecord)})
	}
	return o, err
}

// isFolder reports whether a name is that of a folder, by its end or because
// there is one.
func isFolder(name string) bool {
	path := strings.TrimPrefix(name, "file://")
	if path == "" {
		return name != ""
	}
	if last := path[len(path)-1]; last == '/' || os.IsPathSeparator(last) {
		return true
	}
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// automatic sets how often an automatic echo may change: a measurement does not
// come to the end of an epoch.
func (c *call) automatic(o *bench.Options) error {
	const steps = 32
	switch e := &o.Load.Echo; {
	case e.Auto == nil:
	case e.Unit.String() == "shard":
		return usageError("--echo auto changes the factor of shards where an epoch begins, and a measurement is within one: give a number")
	default:
		e.Auto.Segment = steps
	}
	return nil
}

// parseAccelerator reads samples a second, as in 2500/s.
func parseAccelerator(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(s, "/s")), 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) {
		return 0, usageError("--accelerator %s: samples a second, as in 2500/s", s)
	}
	return n, nil
}

// sweep reads the factors of --sweep, as in e=1,2,4,8. A plot has some without.
func (c *call) sweep() ([]float64, error) {
	if !c.IsSet("sweep") {
		if c.IsSet("plot") && !c.IsSet("echo") {
			return []float64{1, 2, 4, 8}, nil
		}
		return nil, nil
	}
	var factors []float64
	for one := range strings.SplitSeq(strings.TrimPrefix(c.String("sweep"), "e="), ",") {
		e, err := strconv.ParseFloat(strings.TrimSpace(one), 64)
		if err != nil || !(e >= 1) {
			return nil, usageError("--sweep %s: factors of 1 and more, as in e=1,2,4,8", c.String("sweep"))
		}
		if slices.Contains(factors, e) {
			return nil, usageError("--sweep %s: the factor %v twice", c.String("sweep"), e)
		}
		factors = append(factors, e)
	}
	return factors, nil
}

// earlier reads the report that --against names, nil without.
func (c *call) earlier() (*bench.Earlier, error) {
	name := c.String("against")
	if name == "" {
		return nil, nil
	}
	r, err := c.openBeside(name)
	if err != nil {
		return nil, err
	}
	const most = 64 << 20
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	switch err = errors.Join(format.ReadError(err, format.In(name)), r.Close()); {
	case err != nil:
		return nil, err
	case len(text) > most:
		return nil, usageError("--against %s: more than %d bytes are no report", format.Redact(name), most)
	}
	e, err := bench.ReadEarlier(text)
	if err != nil {
		return nil, usageError("--against %s: %s", format.Redact(name), message(err))
	}
	return e, nil
}

const hostDevice = "host"

// devices open what --device names, by the word before its colon; what stands
// behind it is for them. Builds with the tag cuda have one.
var devices = map[string]func(ctx context.Context, arg string) (device.Device, error){}

// device opens the device, nil for the host.
func (c *call) device() (device.Device, error) {
	name := c.String("device")
	if name == hostDevice {
		return nil, nil
	}
	kind, arg, _ := strings.Cut(name, ":")
	open, ok := devices[kind]
	switch {
	case ok:
		return open(c.Context.Context, arg)
	case kind == "cuda":
		return nil, usageError("--device %s: this program was built without CUDA: build it with -tags cuda", name)
	}
	return nil, usageError("--device %s: host, or cuda:N", name)
}

// benchOutputs are the files that a measurement writes: begun before it, so that
// what cannot be written is known beforehand, and renamed when all is well.
type benchOutputs struct {
	sinks      []store.Sink
	plot       store.Sink // nil: none
	cpu, heap  store.Sink
	cpuProfile bytes.Buffer
}

func (c *call) benchOutputs() (*benchOutputs, error) {
	o := &benchOutputs{}
	create := func(to *store.Sink, name string) error {
		sink, err := c.Store.Create(c.Context.Context, name)
		if err == nil {
			*to = sink
			o.sinks = append(o.sinks, sink)
		}
		return err
	}
	if name := c.String("plot"); name != "" {
		if err := create(&o.plot, name); err != nil {
			return o, err
		}
	}
	if prefix := c.String("profile"); prefix != "" {
		return o, errors.Join(create(&o.cpu, prefix+".cpu.pprof"), create(&o.heap, prefix+".heap.pprof"))
	}
	return o, nil
}

// abort takes back what was not committed.
func (o *benchOutputs) abort() {
	for _, s := range o.sinks {
		_ = s.Abort()
	}
}

// measure runs the measurement, with a bar where somebody watches, and profiles
// it.
func (o *benchOutputs) measure(c *call, options *bench.Options) (*bench.Report, error) {
	bar := benchBar(c, options)
	if bar != nil {
		defer func() { _ = bar.Finish() }()
	}
	if o.cpu != nil {
		if err := pprof.StartCPUProfile(&o.cpuProfile); err != nil {
			return nil, usageError("--profile: %v", err)
		}
		defer pprof.StopCPUProfile()
	}
	return bench.Run(c.Context.Context, options)
}

// write writes all files, then makes them visible.
func (o *benchOutputs) write(r *bench.Report) error {
	if o.plot != nil {
		if err := r.WriteSVG(o.plot); err != nil {
			return err
		}
	}
	if o.cpu != nil {
		if _, err := o.cpu.Write(o.cpuProfile.Bytes()); err != nil {
			return err
		}
		runtime.GC() // the profile is of what the last collection left
		if err := pprof.WriteHeapProfile(o.heap); err != nil {
			return err
		}
	}
	for _, s := range o.sinks {
		if err := s.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// benchBar draws how far the run is, where somebody watches.
func benchBar(c *call, o *bench.Options) *progressbar.ProgressBar {
	if !c.Watched() {
		return nil
	}
	bar := progressbar.NewOptions(1000,
		progressbar.OptionSetWriter(c.App.ErrWriter),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionFullWidth(),
	)
	o.Progress = func(p bench.Progress) {
		what := fmt.Sprintf("%.0f samples/s", p.EmittedPS)
		if len(o.Sweep) > 0 {
			what = fmt.Sprintf("echo %v: %s", p.Factor, what)
		}
		bar.Describe(what)
		_ = bar.Set(int(1000 * p.Done / p.Total))
	}
	return bar
}
