package codec

import (
	"shardtool/format"
	"shardtool/tensor"
)

// jsonShape is the shape of nested lists of numbers.
type jsonShape struct {
	axes   [maxAxes]int
	rank   int // of the numbers; of the deepest list, if there are none
	count  int
	ragged bool // lists of one depth differ in length
}

// jsonWalk goes through nested lists of numbers.
type jsonWalk struct {
	jsonText
	shape   *jsonShape
	lengths [maxAxes]int // so far, of the lists that are open
	known   [maxAxes]bool
	leaves  bool // a number was seen
}

// measure finds the shape of nested lists of numbers, true and false among them,
// and checks the whole text.
func measure(data []byte, shape *jsonShape) error {
	*shape = jsonShape{}
	w := jsonWalk{jsonText: newJSON(data), shape: shape}
	for {
		opened, err := w.enter()
		if err != nil {
			return err
		}
		if opened && w.next() != ']' {
			continue
		}
		for w.depth > 0 { // a value is complete, or a list is empty
			if !opened {
				w.lengths[w.depth-1]++
			}
			opened = false
			more, err := w.comma(']')
			if err != nil {
				return err
			}
			if more {
				break
			}
			w.close()
		}
		if w.depth == 0 {
			return w.end()
		}
	}
}

// enter passes a number, or the beginning of a list.
func (w *jsonWalk) enter() (opened bool, err error) {
	switch c := w.next(); c {
	case '[':
		if w.depth == maxAxes {
			return false, format.Errorf(format.ErrLimit, format.Nowhere, "JSON: lists lie deeper than %d in each other, at byte %d", maxAxes, w.i)
		}
		if w.leaves && w.depth == w.shape.rank {
			return false, w.isNot("a list beside numbers")
		}
		w.i++
		w.lengths[w.depth] = 0
		w.depth++
		w.shape.rank = max(w.shape.rank, w.depth)
		return true, nil
	case '{':
		return false, w.isNot("an object")
	case '"':
		return false, w.isNot("a string")
	case 'n':
		return false, w.isNot("null")
	default:
		if w.depth != w.shape.rank {
			return false, w.isNot("a number beside lists")
		}
		if (c != 't' || !w.take("true")) && (c != 'f' || !w.take("false")) {
			if _, err := w.number(); err != nil {
				return false, err
			}
		}
	}
	w.leaves = true
	w.shape.count++
	return false, nil
}

func (w *jsonWalk) isNot(what string) error {
	return format.Errorf(format.ErrSchema, format.Nowhere, "found %s in JSON, at byte %d, want numbers", what, w.i)
}

// close ends the innermost list.
func (w *jsonWalk) close() {
	w.depth--
	n := w.lengths[w.depth]
	if !w.known[w.depth] {
		w.known[w.depth] = true
		w.shape.axes[w.depth] = n
	} else if w.shape.axes[w.depth] != n {
		w.shape.ragged = true
	}
}

// putJSON writes the first numbers of a text that measure found sound as
// elements, as many as dst has room for. It returns the text of one that does
// not fit. Where ends is not nil, it appends the number of values before the end
// of each list in the outermost one.
func putJSON(dst []byte, dtype tensor.DType, data []byte, ends []int64) (_ []int64, bad []byte, at int) {
	room := len(dst) / dtype.Size()
	depth, n := 0, 0
	for t := newJSON(data); t.next() != 0; {
		switch t.data[t.i] {
		case '[':
			depth++
			t.i++
		case ',':
			t.i++
		case ']':
			if depth--; depth == 1 && ends != nil {
				ends = append(ends, int64(n))
			}
			t.i++
		default:
			if n == room {
				return ends, nil, n
			}
			from := t.i
			for c := t.peek(); c > ' ' && c != ',' && c != ']'; c = t.peek() {
				t.i++
			}
			if !putNumber(dst, dtype, n, t.data[from:t.i]) {
				return ends, t.data[from:t.i], n
			}
			n++
		}
	}
	return ends, nil, n
}
