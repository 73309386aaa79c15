package order_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"shardtool/format"
	"shardtool/reader/order"
)

// The digests are those of hashlib.sha256 in Python over the lines that the
// plan's settings and shards make:
//
//	shards    "a.tar" 300 3\n   "b.tar" 400 -1\n        first 4 bytes each
//	versions  "tag"\n           ""\n                    first 4 bytes each
//	columns   cls:int64                                 first 8 bytes
//	sum       "batch" "2"\n ... "unit" "sample"\n, then the whole digests of the shards; first 16 bytes
const golden = `{"version":1,"fingerprint":{"sum":"6064e7005cbfdde8ffd41a9199fffb23","settings":{"batch":"2","buffer":"0","columns":"f053f50106ae5c42",` +
	`"count":"2","exclude":"none","keep":"bytes","lanes":"1","seed":"7","shuffle":"none","steps":"0","tail":"keep","unit":"sample"},` +
	`"shards":"0ba49b8c6a58cc6b","versions":"23bd57febd85bcdb"},"epoch":1,"step":1,"factors":[{"step":0,"factor":1.5}],"counts":[{"shard":1,"samples":4}],"world":1}`

func TestStateIsStable(t *testing.T) {
	tr := trial{counts: []int64{3, 4}, Plan: order.Plan{
		Batch: 2, Seed: 7, Factor: order.One * 3 / 2, Keep: "bytes", Columns: "cls:int64", Epochs: 2,
		Parts: []order.Part{{Shards: []order.Entry{
			{Name: "https://host/set/a.tar?X-Signature=1", Bytes: 300, Version: "tag", Samples: 3},
			{Name: "https://host/set/b.tar?X-Signature=2", Bytes: 400, Samples: order.Unknown},
		}}},
	}}
	r, err := newRank(&tr, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	// Seven samples are ten emissions, five steps; the sixth finds that the
	// second shard has ended, and is of the next epoch.
	for range 6 {
		r.step()
	}
	text, err := json.Marshal(r.State())
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != golden {
		t.Errorf("\n got %s\nwant %s", text, golden)
	}
	var back order.State
	if err := json.Unmarshal([]byte(golden), &back); err != nil {
		t.Fatal(err)
	}
	if err := r.Restore(back); err != nil {
		t.Error(err)
	}
}

func TestStaleNamesWhatDiffers(t *testing.T) {
	plan := func(change func(*order.Plan)) order.Plan {
		p := counted(order.Plan{Batch: 4, Seed: 1, Tail: order.TailDrop}, 4, 5, 6).Plan
		for i := range p.Parts[0].Shards {
			p.Parts[0].Shards[i].Name = "s3://bucket/old/" + p.Parts[0].Shards[i].Name
		}
		change(&p)
		return p
	}
	m, err := order.New(plan(func(*order.Plan) {}), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	saved := m.State()
	shards := func(p *order.Plan) []order.Entry { return p.Parts[0].Shards }
	for _, tt := range []struct {
		name   string
		change func(*order.Plan)
		says   string // "": the same plan
	}{
		{"nothing", func(p *order.Plan) {}, ""},
		{"epochs", func(p *order.Plan) { p.Epochs = 9 }, ""},
		{"factor", func(p *order.Plan) { p.Factor = 2 * order.One }, ""},
		{"another place", func(p *order.Plan) {
			for i := range shards(p) {
				shards(p)[i].Name = strings.Replace(shards(p)[i].Name, "s3://bucket/old", "/mnt/new/place", 1)
			}
		}, ""},
		{"versions on one side", func(p *order.Plan) { shards(p)[0].Version = "x" }, ""},
		{"seed", func(p *order.Plan) { p.Seed = 2 }, "seed (1 there, 2 here)"},
		{"batch", func(p *order.Plan) { p.Batch = 8 }, "batch (4 there, 8 here), lanes (4 there, 8 here)"},
		{"lanes", func(p *order.Plan) { p.Lanes = 2 }, "lanes (4 there, 2 here)"},
		{"shuffle", func(p *order.Plan) { p.Shuffle = order.Block(2) }, "shuffle (none there, block(2) here)"},
		{"tail", func(p *order.Plan) { p.Tail = order.TailPad }, "tail (drop there, pad here)"},
		{"steps", func(p *order.Plan) { p.Steps = 2 }, "steps (0 there, 2 here)"},
		{"unit", func(p *order.Plan) { p.Unit = order.Batch }, "unit (sample there, batch here)"},
		{"buffer", func(p *order.Plan) { p.Buffer = 2 }, "buffer (0 there, 2 here)"},
		{"keep", func(p *order.Plan) { p.Keep = "decoded" }, "keep (none there, decoded here)"},
		{"columns", func(p *order.Plan) { p.Columns = "x" }, "differs in columns"},
		{"exclude", func(p *order.Plan) { shards(p)[1].Exclude = []int64{2} }, "exclude (none there, 1, "},
		{"count", func(p *order.Plan) { shards(p)[1].Samples++ }, "shards: 1 of 3 differ, first s3://bucket/old/train-1.tar"},
		{"bytes", func(p *order.Plan) { shards(p)[0].Bytes++; shards(p)[2].Bytes++ }, "shards: 2 of 3 differ, first s3://bucket/old/train-0.tar"},
		{"name", func(p *order.Plan) { shards(p)[2].Name = "s3://bucket/old/other.tar" }, "shards: 1 of 3 differ, first s3://bucket/old/other.tar"},
		{"secret", func(p *order.Plan) { shards(p)[0].Name = "https://me:pw@host/other.tar?sig=x" }, "first https://host/other.tar?sig=REDACTED"},
		{"fewer", func(p *order.Plan) { p.Parts[0].Shards = shards(p)[:2] }, "shards (3 there, 2 here)"},
		{"mix", func(p *order.Plan) {
			s := shards(p)
			p.Parts = []order.Part{{s[:1], 1}, {s[1:], 2}}
		}, "mix (none there, restart 1x1 2x2 here)"},
	} {
		here, err := order.New(plan(tt.change), 0, 1)
		if err != nil {
			t.Fatal(tt.name, err)
		}
		err = here.Restore(saved)
		if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, format.ErrStale) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}

	tagged := plan(func(p *order.Plan) { shards(p)[0].Version, shards(p)[1].Version = "x", "y" })
	m, _ = order.New(tagged, 0, 1)
	saved = m.State()
	here, _ := order.New(plan(func(p *order.Plan) { shards(p)[0].Version, shards(p)[1].Version = "x", "z" }), 0, 1)
	if err := here.Restore(saved); !errors.Is(err, format.ErrStale) || !strings.Contains(err.Error(), "versions: 1 of 3 differ, first s3://bucket/old/train-1.tar") {
		t.Errorf("versions: %v", err)
	}

	many := counted(order.Plan{Batch: 4}, make([]int64, 100)...)
	many.Parts[0].Shards[0].Samples = 1
	m, _ = order.New(many.Plan, 0, 1)
	saved = m.State()
	many.Parts[0].Shards[50].Bytes++ // the stretch from 50 (16 of 32: 16*100/32) to 52
	here, _ = order.New(many.Plan, 0, 1)
	if err := here.Restore(saved); !errors.Is(err, format.ErrStale) || !strings.Contains(err.Error(), "first among train-50.tar to train-52.tar") {
		t.Errorf("many: %v", err)
	}
}

func TestFingerprints(t *testing.T) {
	p := counted(order.Plan{Batch: 4, Shuffle: order.Global}, 4, 5).Plan
	one, err := p.Fingerprint(1)
	four, _ := p.Fingerprint(4)
	if err != nil || len(one.Sum) != 32 || one.Sum != four.Sum {
		t.Errorf("worlds of 1 and 4: %s, %s, %v", one.Sum, four.Sum, err)
	}
	if _, err := p.Fingerprint(3); !errors.Is(err, format.ErrUsage) {
		t.Error(err)
	}
	manifest := p.ManifestFingerprint()
	p.Seed = 9
	if p.ManifestFingerprint() != manifest || len(manifest) != 32 {
		t.Error("the seed is no matter of the manifest")
	}
	for name, change := range map[string]func(*order.Entry){
		"bytes": func(e *order.Entry) { e.Bytes++ }, "count": func(e *order.Entry) { e.Samples++ }, "version": func(e *order.Entry) { e.Version = "x" },
		"exclude": func(e *order.Entry) { e.Exclude = []int64{1} }, "name": func(e *order.Entry) { e.Name = "x" },
	} {
		q := counted(order.Plan{Batch: 4}, 4, 5).Plan
		change(&q.Parts[0].Shards[1])
		if q.ManifestFingerprint() == manifest {
			t.Errorf("%s is a matter of the manifest", name)
		}
	}
}

// A state of a run without counts is for its own world and rank.
func TestRestoreNeedsItsWorld(t *testing.T) {
	tr := uncounted(order.Plan{Batch: 4, Steps: 2, Shuffle: order.Stream(4, 8)}, 9, 9, 9, 9)
	r, _ := newRank(&tr, 1, 2)
	r.step()
	for _, tt := range []struct {
		rank, world int
		says        string
	}{{1, 2, ""}, {0, 2, "of rank 1, not 0"}, {1, 4, "world of 2, not 4"}, {0, 1, "world of 2, not 1"}} {
		other, err := newRank(&tr, tt.rank, tt.world)
		if err != nil {
			t.Fatal(err)
		}
		err = other.Restore(r.State())
		if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, format.ErrUsage) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("rank %d of %d: %v", tt.rank, tt.world, err)
		}
	}
	// Counts that were found out since make another plan.
	known := counted(order.Plan{Batch: 4, Steps: 2, Shuffle: order.Stream(4, 8)}, 9, 9, 9, 9)
	other, _ := newRank(&known, 1, 2)
	if err := other.Restore(r.State()); !errors.Is(err, format.ErrStale) {
		t.Error(err)
	}
}

func TestHostileStates(t *testing.T) {
	light := counted(order.Plan{Batch: 2, Epochs: 2, Shuffle: order.Block(2)}, 5, 5)
	dark := uncounted(order.Plan{Batch: 2, Epochs: 2, Shuffle: order.Stream(2, 4)}, 5, 5)
	heavy := counted(order.Plan{Batch: 2, Epochs: 2, Shuffle: order.Block(2), Unit: order.Shard, Factor: 2 * order.One}, 5, 5)
	one := []order.Segment{{Factor: order.One}}
	for _, tt := range []struct {
		name   string
		tr     *trial
		change func(*order.State)
		is     error
	}{
		{"version", &light, func(s *order.State) { s.Version = 2 }, format.ErrUnsupported},
		{"no version", &light, func(s *order.State) { *s = order.State{} }, format.ErrUnsupported},
		{"no fingerprint", &light, func(s *order.State) { s.Fingerprint = nil }, format.ErrCorrupt},
		{"empty fingerprint", &light, func(s *order.State) { s.Fingerprint = &order.Fingerprint{} }, format.ErrStale},
		{"sum alone", &light, func(s *order.State) { s.Fingerprint = &order.Fingerprint{Sum: s.Fingerprint.Sum} }, format.ErrStale},
		{"other sum", &light, func(s *order.State) { f := *s.Fingerprint; f.Sum = "x"; s.Fingerprint = &f }, format.ErrStale},
		{"short digests", &light, func(s *order.State) { f := *s.Fingerprint; f.Sum, f.Shards = "x", "ab"; s.Fingerprint = &f }, format.ErrStale},
		{"epoch", &light, func(s *order.State) { s.Epoch = -1 }, format.ErrCorrupt},
		{"step", &light, func(s *order.State) { s.Step = -1 }, format.ErrCorrupt},
		{"huge step", &light, func(s *order.State) { s.Step = math.MaxInt64 }, format.ErrCorrupt},
		{"step too many", &light, func(s *order.State) { s.Step = 6 }, format.ErrCorrupt},
		{"no factor", &light, func(s *order.State) { s.Factors = nil }, format.ErrCorrupt},
		{"factor", &light, func(s *order.State) { s.Factors[0].Factor = 1 }, format.ErrCorrupt},
		{"segment", &light, func(s *order.State) { s.Factors[0].Step = 1 }, format.ErrCorrupt},
		{"segments", &light, func(s *order.State) { s.Factors = append(one, one...) }, format.ErrCorrupt},
		{"segments without echo", &light, func(s *order.State) { s.Step, s.Factors = 2, []order.Segment{{0, order.One}, {1, order.One * 2}} }, format.ErrCorrupt},
		{"segments descending", &light, func(s *order.State) {
			s.Step, s.Factors = 4, []order.Segment{{0, order.One * 2}, {2, order.One}, {1, order.One * 2}}
		}, format.ErrCorrupt},
		{"segments at one step", &light, func(s *order.State) {
			s.Step, s.Factors = 4, []order.Segment{{0, order.One * 2}, {2, order.One}, {2, order.One * 2}}
		}, format.ErrCorrupt},
		{"segment at the step", &light, func(s *order.State) { s.Step, s.Factors = 4, []order.Segment{{0, order.One * 2}, {4, order.One}} }, format.ErrCorrupt},
		{"factor of a segment", &light, func(s *order.State) { s.Step, s.Factors = 4, []order.Segment{{0, order.One * 2}, {2, 1 << 49}} }, format.ErrCorrupt},
		// Each of two lanes has given 2 emissions of its first sample, and has 4 to take: 6 steps.
		{"segments", &light, func(s *order.State) { s.Step, s.Factors = 6, []order.Segment{{0, order.One * 2}, {2, order.One}} }, nil},
		{"segments, step too many", &light, func(s *order.State) { s.Step, s.Factors = 7, []order.Segment{{0, order.One * 2}, {2, order.One}} }, format.ErrCorrupt},
		{"segment of a shard", &heavy, func(s *order.State) { s.Step, s.Factors = 4, []order.Segment{{0, order.One * 2}, {2, order.One}} }, format.ErrCorrupt},
		{"echo of a shard", &heavy, func(s *order.State) { s.Echo = true }, format.ErrCorrupt},
		{"huge step of several", &light, func(s *order.State) {
			s.Step, s.Factors = math.MaxInt64, []order.Segment{{0, order.One * 2}, {math.MaxInt64 - 1, order.One}}
		}, format.ErrCorrupt},
		{"next", &light, func(s *order.State) { s.Next = 1 }, format.ErrCorrupt},
		{"count of a counted", &light, func(s *order.State) { s.Counts = []order.Count{{0, 5}} }, format.ErrCorrupt},
		{"count of none", &dark, func(s *order.State) { s.Counts = []order.Count{{2, 5}} }, format.ErrCorrupt},
		{"count below 0", &dark, func(s *order.State) { s.Counts = []order.Count{{-1, 5}} }, format.ErrCorrupt},
		{"count twice", &dark, func(s *order.State) { s.Counts = []order.Count{{1, 5}, {1, 5}} }, format.ErrCorrupt},
		{"negative count", &dark, func(s *order.State) { s.Counts = []order.Count{{1, -5}} }, format.ErrCorrupt},
		{"too few counted", &dark, func(s *order.State) { s.Counts = []order.Count{{0, 0}, {1, 0}} }, format.ErrCorrupt},
		{"huge step in the dark", &dark, func(s *order.State) { s.Step = math.MaxInt64 }, format.ErrCorrupt},
		{"epoch beyond", &light, func(s *order.State) { s.Epoch = math.MaxInt32 }, nil},
	} {
		r, err := newRank(tt.tr, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		r.step()
		s := r.State()
		s.Factors = append([]order.Segment(nil), one...)
		tt.change(&s)
		again, _ := newRank(tt.tr, 0, 1)
		if err := again.Restore(s); !errors.Is(err, tt.is) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Where places are found by themselves, no state takes long to restore: this
// would not end in a lifetime by steps.
func TestRestoreWithoutSteps(t *testing.T) {
	for _, p := range []order.Plan{
		{Shuffle: order.Global}, {Factor: order.One * 3 / 2, Tail: order.TailDrop}, {Unit: order.Batch, Factor: order.One * 3 / 2, Tail: order.TailDrop},
		{Unit: order.Shard, Factor: order.One * 3 / 2, Tail: order.TailDrop},
	} {
		p.Batch = 1
		m, err := order.New(counted(p, 1<<44).Plan, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		s := m.State()
		f := max(p.Factor, order.One)
		s.Step, s.Factors = 1<<43, []order.Segment{{Factor: f}}
		for range 2 {
			if err := m.Restore(s); err != nil {
				t.Fatal(err)
			}
			refs, ok, err := m.Step(nil, nil)
			if !ok || err != nil || m.State().Step != 1<<43+1 {
				t.Errorf("%v, %v, %v", refs, ok, err)
			}
			if f == order.One || p.Unit == order.Shard {
				break
			}
			s.Factors = []order.Segment{{0, f}, {1 << 40, 2 * f}, {1 << 41, order.One}, {1 << 42, 300 * f}}
		}
	}
}

// FuzzRestore feeds states from outside: an error or an order that goes on,
// and no panic.
func FuzzRestore(f *testing.F) {
	plans := []trial{
		counted(order.Plan{Batch: 2, Epochs: 2, Shuffle: order.Global, Factor: order.One * 3 / 2, Buffer: 6}, 5, 4),
		counted(order.Plan{Batch: 2, Epochs: 2, Shuffle: order.Block(2), Unit: order.Batch, Factor: order.One * 3 / 2, Tail: order.TailPad}, 5, 4),
		uncounted(order.Plan{Batch: 2, Epochs: 2, Shuffle: order.Stream(2, 4), Steps: 9}, 5, 4),
		counted(order.Plan{Batch: 2, Epochs: 2, Shuffle: order.Global, Buffer: 6, Segment: 2}, 5, 4),
		counted(order.Plan{Batch: 2, Epochs: 2, Unit: order.Batch, Tail: order.TailPad, Steps: 9, Segment: 2}, 5, 4),
		uncounted(order.Plan{Batch: 2, Epochs: 2, Buffer: 3, Segment: 1}, 5, 4),
	}
	for i := range plans {
		r, err := newRank(&plans[i], 0, 1)
		if err != nil {
			f.Fatal(err)
		}
		for n := 0; r.step() != nil; n++ {
			text, _ := json.Marshal(r.State())
			f.Add(i, text)
			if plans[i].Segment > 0 && n%3 == 0 {
				r.SetFactor(order.One * order.Factor(n+2) / 2)
			}
		}
	}
	f.Fuzz(func(t *testing.T, i int, text []byte) {
		if i < 0 || i >= len(plans) {
			return
		}
		var s order.State
		if json.Unmarshal(text, &s) != nil {
			return
		}
		r, _ := newRank(&plans[i], 0, 1)
		if err := r.Restore(s); err != nil {
			if format.Sentinel(err) == nil {
				t.Errorf("no sentinel: %v", err)
			}
			return
		}
		r.Buffered(nil)
		for k := range r.Readings() {
			r.Opened(k)
			r.Low(k)
		}
		// A factor may be so high that the end is far.
		for n := 0; n < 10_000 && r.step() != nil; n++ {
			r.Item()
			r.Steps()
		}
	})
}

func TestDetect(t *testing.T) {
	for _, tt := range []struct {
		env         string
		rank, world int
		from, says  string // says: of the error
	}{
		{"", 0, 1, "", ""},
		{"RANK=3 WORLD_SIZE=8", 3, 8, "torchrun", ""},
		{"RANK=0 WORLD_SIZE=1", 0, 1, "torchrun", ""},
		{"RANK=3 WORLD_SIZE=8 SLURM_PROCID=1 SLURM_NTASKS=2", 3, 8, "torchrun", ""},
		{"SLURM_PROCID=1 SLURM_NTASKS=2", 1, 2, "SLURM", ""},
		{"SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=2", 1, 2, "SLURM", ""},
		{"SLURM_NTASKS=8", 0, 1, "", ""},
		{"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 SLURM_PROCID=0 SLURM_NTASKS=1", 2, 4, "Open MPI", ""},
		{"JOB_COMPLETION_INDEX=2 JOB_COMPLETIONS=4", 2, 4, "Kubernetes", ""},
		{"JOB_COMPLETION_INDEX=2 JOB_PARALLELISM=4", 2, 4, "Kubernetes", ""},
		{"JOB_COMPLETION_INDEX=2 WORLD_SIZE=4 JOB_PARALLELISM=3", 2, 4, "Kubernetes", ""},
		{"JOB_COMPLETION_INDEX=2 RANK=1 WORLD_SIZE=4", 1, 4, "torchrun", ""},
		{"JOB_COMPLETION_INDEX=2", 0, 0, "Kubernetes", "set WORLD_SIZE or JOB_COMPLETIONS or JOB_PARALLELISM, or give rank and world as options"},
		{"RANK=1", 0, 0, "torchrun", "set WORLD_SIZE, or give"},
		{"WORLD_SIZE=2", 0, 0, "torchrun", "RANK is not"},
		{"OMPI_COMM_WORLD_SIZE=2", 0, 0, "Open MPI", "OMPI_COMM_WORLD_RANK is not"},
		{"RANK=2 WORLD_SIZE=2", 0, 0, "torchrun", "RANK is 2, but WORLD_SIZE is 2"},
		{"RANK=-1 WORLD_SIZE=2", 0, 0, "torchrun", `RANK is "-1"`},
		{"RANK=one WORLD_SIZE=2", 0, 0, "torchrun", `RANK is "one"`},
		{"RANK=0 WORLD_SIZE=0", 0, 0, "torchrun", `WORLD_SIZE is "0"`},
		{"RANK=0 WORLD_SIZE=1e3", 0, 0, "torchrun", `WORLD_SIZE is "1e3"`},
		{"SLURM_PROCID=0 SLURM_NTASKS=99999999999999999999", 0, 0, "SLURM", "SLURM_NTASKS is"},
	} {
		getenv := func(name string) string {
			for _, kv := range strings.Fields(tt.env) {
				if k, v, _ := strings.Cut(kv, "="); k == name {
					return v
				}
			}
			return ""
		}
		rank, world, from, err := order.Detect(getenv)
		if tt.says != "" {
			if !errors.Is(err, format.ErrUsage) || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("%s: %v, want %q", tt.env, err, tt.says)
			}
		} else if rank != tt.rank || world != tt.world || from != tt.from || err != nil {
			t.Errorf("%s: %d of %d from %q, %v", tt.env, rank, world, from, err)
		}
	}
}
