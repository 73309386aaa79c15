package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// kept is the runs that were done, in a file of JSON Lines to which each is
// added when it ends, so that an interrupted table goes on.
type kept struct {
	mu   sync.Mutex
	file *os.File
	runs map[Run]Result
}

// openKept reads the file at path, which is made if it is not there. A last line
// that was cut off is left out, and overwritten by the next run.
func openKept(path string) (*kept, error) {
	k := &kept{runs: map[Run]Result{}}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	whole := int64(0)
	for line := range lines(data) {
		var r Result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s at byte %d: %w", path, whole, err)
		}
		k.runs[r.Run] = r
		whole += int64(len(line))
	}
	if k.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	if err := k.file.Truncate(whole); err != nil {
		k.file.Close()
		return nil, err
	}
	if _, err := k.file.Seek(whole, 0); err != nil {
		k.file.Close()
		return nil, err
	}
	return k, nil
}

// lines are those that end.
func lines(data []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for {
			n := slices.Index(data, '\n') + 1
			if n == 0 || !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

func (k *kept) find(r Run) (Result, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	res, ok := k.runs[r]
	return res, ok
}

func (k *kept) add(r Result) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs[r.Run] = r
	w := bufio.NewWriter(k.file)
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return err
	}
	return w.Flush()
}

func (k *kept) close() error { return k.file.Close() }
