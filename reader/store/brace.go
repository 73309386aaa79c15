package store

import (
	"math"
	"strconv"
	"strings"

	"shardtool/format"
)

// Brace lists follow the braceexpand module, with which Python's webdataset
// expands its URLs:
//
//	{000..127}   numbers, padded with zeros to the longer end if either has a
//	             leading zero; {5..1} counts down; {0..9..3} goes in steps
//	{a..e}       letters
//	{a,b{1,2}}   alternatives, nested
//	{a}          no list: stays as it is
//	\{           a brace that is none
//
// What a pattern claims is counted before a name is made.
type braces []bracePart

// bracePart is one of: a literal, alternatives, a range.
type bracePart struct {
	literal string
	either  []braces
	span    *braceSpan
}

// braceSpan counts from first to last by step, which is positive.
type braceSpan struct {
	first, last, step int64
	width             int  // of zero padding; 0: none
	letters           bool // first and last are places in braceLetters
}

// braceLetters is the order in which a range of letters counts.
const braceLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

const (
	maxNames      = 1 << 20   // names that the patterns of one command line may stand for
	maxNameBytes  = 128 << 20 // bytes of all these names
	maxBraceDepth = 64
)

// parseBraces reads a pattern. escape says that a backslash makes the next
// byte an ordinary one; it is kept, since a glob may follow.
func parseBraces(pattern string, escape bool, depth int) (braces, error) {
	if depth > maxBraceDepth {
		return nil, patternError(format.ErrLimit, pattern, "braces stand in more than %d others", maxBraceDepth)
	}
	var b braces
	start := 0
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case escape && c == '\\':
			i++
		case c == '}':
			return nil, patternError(format.ErrUsage, pattern, "a brace closes that was not opened")
		case c == '{':
			end := closingBrace(pattern, i, escape)
			if end < 0 {
				return nil, patternError(format.ErrUsage, pattern, "a brace is not closed")
			}
			b = b.literal(pattern[start:i])
			parts, err := parseBraceList(pattern[i+1:end], escape, depth+1)
			if err != nil {
				return nil, err
			}
			b = append(b, parts...)
			i, start = end, end+1
		}
	}
	return b.literal(pattern[start:]), nil
}

func (b braces) literal(s string) braces {
	if s == "" {
		return b
	}
	return append(b, bracePart{literal: s})
}

// closingBrace returns the place of the brace that closes the one at open, or
// -1.
func closingBrace(s string, open int, escape bool) int {
	depth := 0
	for i := open; i < len(s); i++ {
		switch c := s[i]; {
		case escape && c == '\\':
			i++
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// parseBraceList reads what stands between two braces.
func parseBraceList(s string, escape bool, depth int) (braces, error) {
	span, err := parseSpan(s)
	if err != nil {
		return nil, err
	}
	if span != nil {
		return braces{{span: span}}, nil
	}
	items := splitBraceList(s, escape)
	if len(items) == 1 { // no list after all
		b, err := parseBraces(s, escape, depth)
		if err != nil {
			return nil, err
		}
		return append(braces{{literal: "{"}}, b.literal("}")...), nil
	}
	var either []braces
	for _, item := range items {
		b, err := parseBraces(item, escape, depth)
		if err != nil {
			return nil, err
		}
		either = append(either, b)
	}
	return braces{{either: either}}, nil
}

// splitBraceList splits at the commas that stand in no inner brace.
func splitBraceList(s string, escape bool) []string {
	var items []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case escape && c == '\\':
			i++
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth == 0:
			items, start = append(items, s[start:i]), i+1
		}
	}
	return append(items, s[start:])
}

// parseSpan reads "first..last" or "first..last..step", and returns nil where
// s is neither.
func parseSpan(s string) (*braceSpan, error) {
	words := strings.Split(s, "..")
	if len(words) < 2 || len(words) > 3 {
		return nil, nil
	}
	span := &braceSpan{step: 1}
	first, last := words[0], words[1]
	switch {
	case isLetter(first) && isLetter(last):
		span.letters = true
		span.first = int64(strings.IndexByte(braceLetters, first[0]))
		span.last = int64(strings.IndexByte(braceLetters, last[0]))
	case isInteger(first) && isInteger(last):
		if padded(first) || padded(last) {
			span.width = max(len(first), len(last))
		}
	default:
		return nil, nil
	}
	if len(words) == 3 && !isInteger(words[2]) {
		return nil, nil
	}
	numbers := []*int64{&span.first, &span.last, &span.step}
	for i, w := range words {
		if span.letters && i < 2 {
			continue
		}
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil || n == math.MinInt64 {
			return nil, patternError(format.ErrLimit, s, "%s has too many digits", w)
		}
		*numbers[i] = n
	}
	if span.step < 0 {
		span.step = -span.step
	}
	span.step = max(span.step, 1)
	return span, nil
}

func isLetter(s string) bool { return len(s) == 1 && strings.Contains(braceLetters, s) }

func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// padded reports whether a number asks for leading zeros.
func padded(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return len(digits) > 1 && digits[0] == '0'
}

// count returns how many strings b stands for, or maxNames+1 if they are more
// than maxNames.
func (b braces) count() int {
	const over = maxNames + 1
	total := 1
	for _, part := range b {
		n := 1
		switch {
		case part.span != nil:
			n = int(min(part.span.steps(), over-1)) + 1
		case part.either != nil:
			n = 0
			for _, alternative := range part.either {
				n = min(n+alternative.count(), over)
			}
		}
		if total = min(total*n, over); total == over {
			break
		}
	}
	return total
}

// each passes every string that b stands for to yield, in order, each appended
// to prefix; it ends early and returns false when yield does.
func (b braces) each(prefix []byte, yield func([]byte) bool) bool {
	if len(b) == 0 {
		return yield(prefix)
	}
	part, rest := b[0], b[1:]
	switch {
	case part.span != nil:
		return part.span.each(prefix, func(p []byte) bool { return rest.each(p, yield) })
	case part.either != nil:
		for _, alternative := range part.either {
			if !alternative.each(prefix, func(p []byte) bool { return rest.each(p, yield) }) {
				return false
			}
		}
		return true
	default:
		return rest.each(append(prefix, part.literal...), yield)
	}
}

func (s *braceSpan) each(prefix []byte, yield func([]byte) bool) bool {
	step := s.step
	if s.last < s.first {
		step = -step
	}
	v := s.first
	for range s.steps() {
		if !yield(s.append(prefix, v)) {
			return false
		}
		v += step
	}
	return yield(s.append(prefix, v))
}

// steps returns how many steps lead from the first to the last number.
func (s *braceSpan) steps() uint64 {
	if s.last < s.first {
		return (uint64(s.first) - uint64(s.last)) / uint64(s.step)
	}
	return (uint64(s.last) - uint64(s.first)) / uint64(s.step)
}

func (s *braceSpan) append(dst []byte, v int64) []byte {
	if s.letters {
		return append(dst, braceLetters[v])
	}
	digits := strconv.FormatInt(v, 10)
	zeros := s.width - len(digits)
	if v < 0 && zeros > 0 {
		dst, digits = append(dst, '-'), digits[1:]
	}
	for range zeros {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

func patternError(sentinel error, pattern, msg string, args ...any) error {
	if len(pattern) > 200 {
		pattern = pattern[:200] + "…"
	}
	return format.Errorf(sentinel, format.In(pattern), msg, args...)
}
