package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// The faults of a .npy file. Every error of ReadNPY and ParseNPY is an
// *NPYError that wraps one of them.
var (
	ErrNotNPY         = errors.New("not a .npy file")
	ErrNPYTruncated   = errors.New("truncated")
	ErrNPYCorrupt     = errors.New("corrupt")
	ErrNPYUnsupported = errors.New("unsupported") // well formed, but of elements that no DType is
)

// NPYError is what is wrong with a .npy file.
type NPYError struct {
	Err    error  // one of the four
	Detail string // in words
}

// Error returns the fault and its detail.
func (e *NPYError) Error() string { return "tensor: .npy: " + e.Err.Error() + ": " + e.Detail }

// Unwrap returns the fault.
func (e *NPYError) Unwrap() error { return e.Err }

func npyError(fault error, detail string, args ...any) error {
	return &NPYError{fault, fmt.Sprintf(detail, args...)}
}

// maxAxes is the most that NumPy reads.
const maxAxes = 64

const npyMagic = "\x93NUMPY"

// ReadNPY reads a .npy file, as WriteNPY and NumPy write it (NEP 1, versions 1
// to 3; see WriteNPY for the bytes), of elements that a DType is: f2, f4, f8, i1
// to i8, u1 to u8 and b1, in either order of bytes and of axes. bfloat16, which
// NumPy has not, comes back as the Uint16 that it was written as. Where data
// holds the array as a Dense has it, the array is a view of data, and lent as
// long as that is; otherwise it has memory of its own, of the size of data.
func ReadNPY(data []byte) (Dense, error) {
	s, err := ParseNPY(data, nil)
	if err != nil {
		return Dense{}, err
	}
	return s.Dense(), nil
}

// ParseNPY reads the header of a .npy file, as ReadNPY does, and finds the
// elements. The shape is written into the memory of shape, which may be nil.
// A file that is longer than its array is corrupt. But for a shape that is too
// small, it allocates nothing.
func ParseNPY(data []byte, shape Shape) (Stored, error) {
	header, rest, err := npyParts(data)
	if err != nil {
		return Stored{}, err
	}
	s := Stored{Shape: shape[:0]}
	if err := s.header(header); err != nil {
		return Stored{}, err
	}
	n, err := Bytes(s.DType, s.Shape)
	switch {
	case err != nil:
		return Stored{}, npyError(ErrNPYCorrupt, "%v", err)
	case int64(len(rest)) < n:
		return Stored{}, npyError(ErrNPYTruncated, "the array has %d bytes, %d are there", n, len(rest))
	case int64(len(rest)) > n:
		return Stored{}, npyError(ErrNPYCorrupt, "%d bytes follow the array", int64(len(rest))-n)
	}
	s.Data = rest
	return s, nil
}

// npyParts returns the header's text and what follows it.
func npyParts(data []byte) (header, rest []byte, err error) {
	if n := min(len(data), len(npyMagic)); string(data[:n]) != npyMagic[:n] {
		return nil, nil, npyError(ErrNotNPY, "it begins with %q", data[:n])
	}
	if len(data) < len(npyMagic)+2 {
		return nil, nil, npyError(ErrNPYTruncated, "the header ends early")
	}
	major, minor := data[len(npyMagic)], data[len(npyMagic)+1]
	width := 4 // of the header's length
	switch {
	case minor != 0 || major < 1 || major > 3:
		return nil, nil, npyError(ErrNPYUnsupported, "version %d.%d", major, minor)
	case major == 1:
		width = 2
	}
	rest = data[len(npyMagic)+2:]
	if len(rest) < width {
		return nil, nil, npyError(ErrNPYTruncated, "the header ends early")
	}
	n := uint64(binary.LittleEndian.Uint16(rest))
	if width == 4 {
		n = uint64(binary.LittleEndian.Uint32(rest))
	}
	rest = rest[width:]
	if uint64(len(rest)) < n {
		return nil, nil, npyError(ErrNPYTruncated, "the header has %d bytes, %d are there", n, len(rest))
	}
	return rest[:n], rest[n:], nil
}

// header reads the dictionary of three names.
func (s *Stored) header(text []byte) error {
	p := literal{text, 0}
	var seen [3]bool
	ok := p.take('{')
	for ok && !p.take('}') {
		name, isName := p.quoted()
		at := slices.IndexFunc(npyNames[:], func(n string) bool { return n == string(name) })
		if !isName || at < 0 || seen[at] || !p.take(':') {
			ok = false
			break
		}
		seen[at] = true
		var err error
		if ok, err = s.entry(at, &p); err != nil {
			return err
		}
		ok = ok && (p.take(',') || p.next() == '}')
	}
	p.space()
	if !ok || p.i < len(p.text) || seen != [3]bool{true, true, true} {
		return npyError(ErrNPYCorrupt, "byte %d of the header's %.200q", p.i, text)
	}
	return nil
}

var npyNames = [3]string{"descr", "fortran_order", "shape"}

func (s *Stored) entry(name int, p *literal) (ok bool, err error) {
	switch npyNames[name] {
	case "descr":
		if p.next() == '[' {
			return false, npyError(ErrNPYUnsupported, "elements that are records")
		}
		descr, ok := p.quoted()
		if !ok {
			return false, nil
		}
		return true, s.descr(descr)
	case "fortran_order":
		s.Fortran = p.word("True")
		return s.Fortran || p.word("False"), nil
	default:
		s.Shape, ok = p.tuple(s.Shape)
		return ok, nil
	}
}

// descr reads a type: its order of bytes, if it has one, and its name.
func (s *Stored) descr(descr []byte) error {
	name := descr
	s.BigEndian = bigEndian
	if len(name) > 0 && bytes.IndexByte([]byte("<>|="), name[0]) >= 0 {
		if name[0] == '<' || name[0] == '>' {
			s.BigEndian = name[0] == '>'
		}
		name = name[1:]
	}
	for d, known := range npyTypes {
		if known == string(name) && DType(d) != BFloat16 {
			s.DType = DType(d)
			return nil
		}
	}
	if string(name) == "O" {
		return npyError(ErrNPYUnsupported, "elements that are Python objects, by pickle")
	}
	return npyError(ErrNPYUnsupported, "elements of type %.40q", descr)
}

// literal goes through the text of a literal of Python.
type literal struct {
	text []byte
	i    int
}

func (p *literal) space() {
	for ; p.i < len(p.text); p.i++ {
		switch p.text[p.i] {
		case ' ', '\t', '\r', '\n', '\f':
		default:
			return
		}
	}
}

// next is the byte that comes next, 0 at the end.
func (p *literal) next() byte {
	if p.space(); p.i < len(p.text) {
		return p.text[p.i]
	}
	return 0
}

func (p *literal) take(c byte) bool {
	if p.next() != c {
		return false
	}
	p.i++
	return true
}

func (p *literal) word(w string) bool {
	if p.space(); !bytes.HasPrefix(p.text[p.i:], []byte(w)) {
		return false
	}
	p.i += len(w)
	return true
}

// quoted reads a string without escapes.
func (p *literal) quoted() ([]byte, bool) {
	q := p.next()
	if q != '\'' && q != '"' {
		return nil, false
	}
	n := bytes.IndexByte(p.text[p.i+1:], q)
	if n < 0 {
		return nil, false
	}
	word := p.text[p.i+1:][:n]
	p.i += n + 2
	return word, bytes.IndexByte(word, '\\') < 0
}

// tuple reads the axes of a shape. Python 2 wrote an L behind a number.
func (p *literal) tuple(shape Shape) (Shape, bool) {
	if !p.take('(') {
		return shape, false
	}
	for comma := true; !p.take(')'); comma = p.take(',') {
		n, ok := p.number()
		if !ok || !comma || len(shape) == maxAxes {
			return shape, false
		}
		shape = append(shape, n)
		if p.next() == ')' && len(shape) == 1 {
			return shape, false // a number in parentheses, and no tuple
		}
	}
	return shape, true
}

func (p *literal) number() (n int, ok bool) {
	for p.space(); p.i < len(p.text) && '0' <= p.text[p.i] && p.text[p.i] <= '9'; p.i++ {
		if n > (math.MaxInt-9)/10 {
			return 0, false
		}
		n = n*10 + int(p.text[p.i]-'0')
		ok = true
	}
	if ok && p.i < len(p.text) && p.text[p.i] == 'L' {
		p.i++
	}
	return n, ok
}
