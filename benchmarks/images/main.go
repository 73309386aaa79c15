// Command images measures decoding and augmenting beside libjpeg-turbo, in
// turns, and prints ratios:
//
//	go run . [-ref REF] [-rounds 7] [-cores 1] [FOLDER]
//
// REF is the program that benchmarks/peers/libjpeg builds; without it the rows
// of which libjpeg is the opponent are left out. FOLDER has JPEGs; without it,
// those embedded in the project are used. Let nothing else run meanwhile.
//
// Both sides of a row get the same pictures and the same crops, which are drawn
// once, by RandomResizedCrop's rule. What they do to them is the same but in
// two rows:
//
//	JPEG to augmented f32   libjpeg only decodes the crop to RGB: the ratio is
//	                        how much of that time all the rest takes besides
//	resize of the crop      ours goes on where imaging ends: it converts the
//	                        color, flips, normalizes and writes float32
package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	stdjpeg "image/jpeg"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/disintegration/imaging"

	"shardtool/augment"
	"shardtool/augment/jpeg"
	"shardtool/fixtures"
	"shardtool/tensor"
)

func main() {
	ref := flag.String("ref", "", "the program of benchmarks/peers/libjpeg")
	rounds := flag.Int("rounds", 7, "how often each is measured")
	cores := flag.Int("cores", 1, "how many threads decode, and how many processes of libjpeg")
	passes := flag.Int("passes", 2, "passes over the pictures of each measurement")
	flag.Parse()
	if err := run(*ref, flag.Arg(0), *rounds, *cores, *passes); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// picture is a photograph and what is done to it.
type picture struct {
	name string
	data []byte
	size image.Point
	draw augment.Draws
	crop image.Rectangle
}

func run(ref, folder string, rounds, cores, passes int) error {
	runtime.GOMAXPROCS(cores)
	dir, err := os.MkdirTemp("", "images")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	pictures, err := load(folder, dir)
	if err != nil {
		return err
	}
	var servers []*server
	for range cores {
		if ref == "" {
			break
		}
		s, err := serve(ref, pictures)
		if err != nil {
			return err
		}
		defer s.close()
		servers = append(servers, s)
	}
	var pixels, area float64
	for _, p := range pictures {
		pixels += float64(p.size.X * p.size.Y)
		area += float64(p.crop.Dx() * p.crop.Dy())
	}
	n := float64(len(pictures))
	fmt.Printf("%d pictures of %.0f pixels, crops of %.0f in the mean; %d core(s), %d rounds\n", len(pictures), pixels/n, area/n, cores, rounds)
	m := &measurement{pictures: pictures, servers: servers, cores: cores, passes: passes}
	contests := slices.DeleteFunc(slices.Clone(contests), func(c contest) bool { return c.std == nil && ref == "" })
	for range rounds {
		for i := range contests {
			if err := m.round(&contests[i]); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%-36s %10s %10s   %s\n", "", "us/picture", "opponent", "ratio: median (least to most)")
	for i := range contests {
		contests[i].print()
	}
	return nil
}

// load reads the photographs and draws their crops. It puts the files into dir,
// for libjpeg to read.
func load(folder, dir string) ([]picture, error) {
	files := map[string][]byte{}
	if folder != "" {
		names, err := filepath.Glob(filepath.Join(folder, "*.jpg"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
				return nil, err
			}
		}
	} else if err := embedded(files); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("no photographs")
	}
	tr := augment.ImageNetTrain(size)
	var pictures []picture
	for name, data := range files {
		p := picture{name: filepath.Join(dir, name), data: data}
		pictures = append(pictures, p)
	}
	slices.SortFunc(pictures, func(a, b picture) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	for i := range pictures {
		p := &pictures[i]
		h, err := augment.ParseHeader(p.data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		p.size, p.draw = image.Pt(h.Width, h.Height), augment.Draws(i)*0x9e3779b97f4a7c15
		plan := tr.Plan(h, p.draw)
		p.crop = plan.Crop
		if err := os.WriteFile(p.name, p.data, 0o644); err != nil {
			return nil, err
		}
	}
	return pictures, nil
}

func embedded(files map[string][]byte) error {
	f, err := fixtures.Photos.Open(fixtures.PhotoShards[0])
	if err != nil {
		return err
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if filepath.Ext(h.Name) == ".jpg" {
			if files[h.Name], err = io.ReadAll(r); err != nil {
				return err
			}
		}
	}
}

// contest is something that both sides do.
type contest struct {
	name string
	ours func() task
	op   string      // of libjpeg's server
	std  func() task // or an opponent in Go

	mine, theirs, ratios []float64
}

// task does one picture. It has memory of its own.
type task func(p *picture) error

const size = 224

var contests = []contest{
	{name: "entropy decoding", ours: entropy, op: "entropy"},
	{name: "whole picture to RGB", ours: whole, op: "full"},
	{name: "crop to RGB", ours: crop, op: "crop"},
	{name: "JPEG to augmented f32, crop decode", ours: chain, op: "crop"},
	{name: "whole picture to planes, image/jpeg", ours: planes, std: standard},
	{name: "resize of the crop, imaging", ours: apply, std: resize},
}

func entropy() task {
	d := jpeg.NewDecoder(nil)
	return func(p *picture) error {
		src, err := d.Coefficients(p.data)
		if err != nil {
			return err
		}
		f := src.Frame()
		for y := range f.Rows {
			if _, err := src.Row(y, 0, f.Cols); err != nil {
				return err
			}
		}
		return nil
	}
}

func whole() task {
	d := jpeg.NewDecoder(nil)
	var dst []byte
	return func(p *picture) error {
		dst = slices.Grow(dst[:0], 3*p.size.X*p.size.Y)[:3*p.size.X*p.size.Y]
		return d.RGB(dst, 3*p.size.X, p.data, image.Rectangle{Max: p.size}, 1)
	}
}

func crop() task {
	d := jpeg.NewDecoder(nil)
	var dst []byte
	return func(p *picture) error {
		n := 3 * p.crop.Dx() * p.crop.Dy()
		dst = slices.Grow(dst[:0], n)[:n]
		return d.RGB(dst, 3*p.crop.Dx(), p.data, p.crop, 1)
	}
}

// chain writes into the slots of a batch of 64 in turn, as a loader does.
func chain() task {
	tr := augment.ImageNetTrain(size)
	w := tr.NewWorker(nil)
	var px augment.Pixels
	var pool tensor.Pool
	batch := tensor.View(tensor.Float32, tensor.Shape{64, 3, size, size}, pool.Get(64*3*size*size*4).Bytes())
	clear(batch.Bytes()) // so that its pages are there
	n := 0
	return func(p *picture) error {
		n++
		return w.Run(batch.At(n%64), &px, p.data, p.draw)
	}
}

func planes() task {
	d := jpeg.NewDecoder(nil)
	var img jpeg.Image
	return func(p *picture) error { return d.Planes(&img, p.data, image.Rectangle{Max: p.size}, 1) }
}

func standard() task {
	return func(p *picture) error {
		_, err := stdjpeg.Decode(bytes.NewReader(p.data))
		return err
	}
}

// apply does what comes after decoding; the pixels were decoded before.
func apply() task {
	tr := augment.ImageNetTrain(size)
	w := tr.NewWorker(nil)
	var pool tensor.Pool
	dst := tensor.View(tensor.Float32, tensor.Shape{3, size, size}, pool.Get(3*size*size*4).Bytes())
	kept := map[string]*augment.Pixels{}
	return func(p *picture) error {
		px := kept[p.name]
		if px == nil {
			px = new(augment.Pixels)
			kept[p.name] = px
			if err := w.Decode(px, p.data, p.crop); err != nil {
				return err
			}
		}
		h := augment.Header{Width: p.size.X, Height: p.size.Y}
		plan := tr.Plan(h, p.draw)
		return w.Apply(dst, px, &plan)
	}
}

func resize() task {
	kept := map[string]image.Image{}
	return func(p *picture) error {
		img := kept[p.name]
		if img == nil {
			decoded, err := stdjpeg.Decode(bytes.NewReader(p.data))
			if err != nil {
				return err
			}
			img = decoded.(*image.YCbCr).SubImage(p.crop)
			kept[p.name] = img
		}
		imaging.Resize(img, size, size, imaging.Linear)
		return nil
	}
}

// measurement has what is the same for all contests.
type measurement struct {
	pictures []picture
	servers  []*server
	cores    int
	passes   int
	tasks    map[string][]task
}

func (m *measurement) round(c *contest) error {
	mine, err := m.seconds(c.name, c.ours)
	if err != nil {
		return err
	}
	var theirs float64
	if c.std != nil {
		theirs, err = m.seconds(c.name+", opponent", c.std)
	} else {
		theirs, err = m.ask(c.op)
	}
	if err != nil {
		return err
	}
	each := float64(len(m.pictures) * m.passes)
	c.mine = append(c.mine, mine/each*1e6)
	c.theirs = append(c.theirs, theirs/each*1e6)
	c.ratios = append(c.ratios, theirs/mine)
	return nil
}

// seconds runs our passes, on all cores, after one to warm up.
func (m *measurement) seconds(name string, newTask func() task) (float64, error) {
	if m.tasks == nil {
		m.tasks = map[string][]task{}
	}
	tasks := m.tasks[name]
	if tasks == nil {
		for range m.cores {
			tasks = append(tasks, newTask())
		}
		m.tasks[name] = tasks
		if _, err := m.pass(tasks, 1); err != nil {
			return 0, err
		}
	}
	return m.pass(tasks, m.passes)
}

// pass takes the time of passes over all pictures, which the cores share.
func (m *measurement) pass(tasks []task, passes int) (float64, error) {
	runtime.GC()
	begin := time.Now()
	var all sync.WaitGroup
	errs := make([]error, len(tasks))
	for i, do := range tasks {
		all.Go(func() {
			for range passes {
				for j := i; j < len(m.pictures); j += len(tasks) {
					if err := do(&m.pictures[j]); err != nil {
						errs[i] = fmt.Errorf("%s: %w", m.pictures[j].name, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	return time.Since(begin).Seconds(), errors.Join(errs...)
}

// ask has each process of libjpeg do all pictures: as many times as there are
// processes what we do.
func (m *measurement) ask(op string) (float64, error) {
	begin := time.Now()
	var all sync.WaitGroup
	errs := make([]error, len(m.servers))
	for i, s := range m.servers {
		all.Go(func() { errs[i] = s.ask(op, m.passes) })
	}
	all.Wait()
	return time.Since(begin).Seconds() / float64(len(m.servers)), errors.Join(errs...)
}

func (c *contest) print() {
	median := func(v []float64) float64 {
		s := slices.Sorted(slices.Values(v))
		return s[len(s)/2]
	}
	fmt.Printf("%-36s %10.0f %10.0f   %.2f (%.2f to %.2f)\n", c.name, median(c.mine), median(c.theirs),
		median(c.ratios), slices.Min(c.ratios), slices.Max(c.ratios))
}

// server is a process of libjpeg that has the same pictures in memory.
type server struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func serve(ref string, pictures []picture) (*server, error) {
	list := filepath.Join(filepath.Dir(pictures[0].name), "list")
	var text bytes.Buffer
	for _, p := range pictures {
		fmt.Fprintf(&text, "%d %d %d %d %s\n", p.crop.Min.X, p.crop.Min.Y, p.crop.Dx(), p.crop.Dy(), p.name)
	}
	if err := os.WriteFile(list, text.Bytes(), 0o644); err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command(ref, "bench", list)}
	s.cmd.Stderr = os.Stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(out)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if !s.out.Scan() {
		s.close()
		return nil, fmt.Errorf("%s says nothing", ref)
	}
	return s, nil
}

func (s *server) ask(op string, passes int) error {
	if _, err := fmt.Fprintf(s.in, "%s %d\n", op, passes); err != nil {
		return err
	}
	if !s.out.Scan() {
		return fmt.Errorf("libjpeg does not answer to %s", op)
	}
	var answer struct{ Seconds float64 }
	return json.Unmarshal(s.out.Bytes(), &answer)
}

func (s *server) close() {
	s.in.Close()
	_ = s.cmd.Wait()
}
