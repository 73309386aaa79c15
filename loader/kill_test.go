//go:build unix

package loader

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"shardtool/echo"
	"shardtool/reader/order"
)

// trainsIn is the variable that makes a process of this test the trainer.
const trainsIn = "SHARDTOOL_TEST_TRAINS_IN"

// trained is what a trainer in a process of its own is told.
type trained struct {
	Shards []string
	Global bool
}

func (tr *trained) options() Options {
	o := Options{Columns: assortedColumns(), GlobalBatch: 6, Seed: 17, Epochs: 2, World: 1, Tail: order.TailWrap, Echo: echo.Options{Factor: 2, Keep: echo.Decoded, Buffer: 18}}
	o.Shuffle = order.Stream(2, 12)
	if tr.Global {
		o.Shuffle = order.Global
	}
	return o
}

// train goes on from the folder's state, and for each batch appends a line to
// its log, then replaces the state, then says so on standard output.
func train(dir string) error {
	var tr trained
	var o Options
	text, err := os.ReadFile(filepath.Join(dir, "options"))
	if err == nil {
		err = json.Unmarshal(text, &tr)
	}
	if err != nil {
		return err
	}
	o = tr.options()
	switch text, err := os.ReadFile(filepath.Join(dir, "state")); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &o.Resume); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	l, err := New(context.Background(), dataset(tr.Shards), &o)
	if err != nil {
		return err
	}
	defer l.Close()
	for b, err := range l.Batches(context.Background()) {
		if err != nil {
			return err
		}
		s := see(b)
		b.Release()
		if _, err := log.WriteString(s.line()); err != nil { // one write: whole, or not at all
			return err
		}
		text, err := json.Marshal(s.state)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "next"), text, 0o644)
		}
		if err == nil {
			err = os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "state"))
		}
		if err != nil {
			return err
		}
		fmt.Println("trained")
		time.Sleep(2 * time.Millisecond) // for the kill to arrive
	}
	return nil
}

// line is the step that a batch leads to, and all of the batch as a hash.
func (s *seen) line() string {
	return fmt.Sprintf("%d %d %x\n", s.state.Epoch, s.state.Step, s.all)
}

// TestTrainer is the process that is killed.
func TestTrainer(t *testing.T) {
	dir := os.Getenv(trainsIn)
	if dir == "" {
		t.Skip("it is run by TestKilledRunsGoOn, in a process of its own")
	}
	if err := train(dir); err != nil {
		t.Fatal(err)
	}
}

// A run that is killed with SIGKILL, again and again, and goes on from its last
// state each time, gives the batches that one without a stop gives.
func TestKilledRunsGoOn(t *testing.T) {
	shards := assorted(t, nil, 9, 14, 0, 13).Shards()
	for _, global := range []bool{true, false} {
		tr := trained{Shards: shards, Global: global}
		want, err := watch(t, dataset(shards), tr.options())
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		text, err := json.Marshal(tr)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "options"), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(3, 4))
		kills := 0
		for !trainedOn(t, dir, rng.IntN(6)) {
			if kills++; kills > 10*len(want) {
				t.Fatal("it comes to no end")
			}
		}
		if kills == 0 { // how many arrive in time is the machine's affair
			t.Error("never killed")
		}
		holdLog(t, dir, want)
	}
}

// trainedOn starts the trainer and kills it after so many batches, wherever it
// is by then. It reports whether the trainer came to its end.
func trainedOn(t *testing.T, dir string, most int) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestTrainer$")
	cmd.Env = append(os.Environ(), trainsIn+"="+dir)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	killed := false
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "trained") {
			if !killed && !strings.HasPrefix(lines.Text(), "PASS") && !strings.HasPrefix(lines.Text(), "coverage") {
				t.Error(lines.Text())
			}
			continue
		}
		if most--; most < 0 && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Error(err)
			}
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if err != nil && !killed {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	return err == nil
}

// holdLog holds what the trainers wrote against what was wanted. A batch that
// was written when the state before it still stood is there twice, and equal.
func holdLog(t *testing.T, dir string, want []seen) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for line := range strings.Lines(string(text)) {
		switch {
		case at < len(want) && line == want[at].line():
			at++
		case at > 0 && line == want[at-1].line():
		default:
			t.Fatalf("batch %d of %d is %s", at, len(want), line)
		}
	}
	if at != len(want) {
		t.Fatalf("%d batches of %d", at, len(want))
	}
}
