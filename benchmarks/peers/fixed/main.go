// Command fixed tells which crops shardtool draws, and shows its pixels of them,
// so that others can do the same crops and be held against the same reference.
//
//	fixed draw SIZE SEEDS FILE...   for each seed below SEEDS, lines of "SEED X Y W H FILE"
//	fixed pixels SIZE SEED LIST     LIST has those lines of one seed, without the seed
//
// The pixels are one float32 array in the byte order of the machine, [lines 3
// SIZE SIZE]: each crop resized and normalised as for training, without flip.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"strconv"
	"strings"

	"shardtool/augment"
	"shardtool/tensor"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := run(out, os.Args[1:])
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fixed:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	if len(args) < 4 {
		return errors.New("usage: fixed draw SIZE SEEDS FILE... | fixed pixels SIZE SEED LIST")
	}
	size, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	seed, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	c, err := newCropper(size)
	if err != nil {
		return err
	}
	switch args[0] {
	case "draw":
		return c.drawAll(out, seed, args[3:])
	case "pixels":
		return c.pixelsOf(out, seed, args[3])
	}
	return fmt.Errorf("%q is neither draw nor pixels", args[0])
}

// cropper makes one array after another in mem.
type cropper struct {
	transform *augment.Transform
	worker    *augment.Worker
	pixels    augment.Pixels
	mem       []byte
	dst       tensor.Dense
}

func newCropper(size int) (*cropper, error) {
	t, err := augment.Compile(augment.RandomResizedCrop{Size: size}, augment.ImageNetNormalize)
	if err != nil {
		return nil, err
	}
	n, err := tensor.Bytes(t.DType(), t.Shape())
	if err != nil {
		return nil, err
	}
	c := &cropper{transform: t, worker: t.NewWorker(nil), mem: make([]byte, n)}
	c.dst = tensor.View(t.DType(), t.Shape(), c.mem)
	return c, nil
}

// plan draws for the file at a place of the list.
func (c *cropper) plan(encoded []byte, seed, place int) (augment.Plan, image.Rectangle, error) {
	header, err := c.worker.Header(encoded)
	if err != nil {
		return augment.Plan{}, image.Rectangle{}, err
	}
	plan := c.transform.Plan(header, augment.Draws(seed<<32|place))
	return plan, plan.Ops()[0].Rect, nil
}

func (c *cropper) drawAll(out io.Writer, seeds int, files []string) error {
	for place, file := range files {
		encoded, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for seed := range seeds {
			_, crop, err := c.plan(encoded, seed, place)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			fmt.Fprintln(out, seed, crop.Min.X, crop.Min.Y, crop.Dx(), crop.Dy(), file)
		}
	}
	return nil
}

func (c *cropper) pixelsOf(out io.Writer, seed int, list string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	for place, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var x, y, w, h int
		var file string
		if _, err := fmt.Sscanf(line, "%d %d %d %d %s", &x, &y, &w, &h, &file); err != nil {
			return fmt.Errorf("%q is no \"X Y W H FILE\": %w", line, err)
		}
		if err := c.one(file, seed, place, image.Rect(x, y, x+w, y+h)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if _, err := out.Write(c.mem); err != nil {
			return err
		}
	}
	return nil
}

func (c *cropper) one(file string, seed, place int, want image.Rectangle) error {
	encoded, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	plan, crop, err := c.plan(encoded, seed, place)
	if err != nil {
		return err
	}
	if crop != want {
		return fmt.Errorf("the list has the crop %v, seed %d draws %v", want, seed, crop)
	}
	if err := c.worker.DecodePlan(&c.pixels, encoded, &plan); err != nil {
		return err
	}
	return c.worker.Apply(c.dst, &c.pixels, &plan)
}
