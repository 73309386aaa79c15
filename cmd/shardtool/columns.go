package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"shardtool/augment"
	"shardtool/loader"
	"shardtool/tensor"
)

// pictureFields are the usual names of pictures.
const pictureFields = "jpg;jpeg;png;webp;gif;image/encoded;image"

// parseColumns reads the values of --columns; without any it is a picture.
func parseColumns(values []string) ([]loader.Column, error) {
	if len(values) == 0 {
		values = []string{"image"}
	}
	var columns []loader.Column
	for _, value := range values {
		for _, one := range splitEscaped(value, ',') {
			c, err := parseColumn(one)
			if err != nil {
				return nil, usageError("--columns %s: %v", one, err)
			}
			columns = append(columns, c)
		}
	}
	return columns, nil
}

// splitEscaped splits at a byte that no backslash stands before. The
// backslashes stay.
func splitEscaped(s string, at byte) []string {
	var parts []string
	start := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case at:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// columnText is the text of a column, taken apart: KIND:FIELD:WORD... and, of
// the words, those that begin with a name and "=" apart.
type columnText struct {
	kind, field string
	words       []string
	options     map[string]string
}

// columnKinds make columns. A kind takes what it understands of the words and
// options; what is left is an error.
var columnKinds = map[string]func(t *columnText) (loader.Column, error){
	"image":    imageColumn,
	"int64":    func(t *columnText) (loader.Column, error) { return loader.Int64(t.field), nil },
	"float32":  func(t *columnText) (loader.Column, error) { return loader.Float32(t.field), nil },
	"bytes":    func(t *columnText) (loader.Column, error) { return loader.Bytes(t.field), nil },
	"key":      func(*columnText) (loader.Column, error) { return loader.Key(), nil },
	"location": func(*columnText) (loader.Column, error) { return loader.Location(), nil },
	"dense":    denseColumn,
	"padded":   paddedColumn,
	"ragged":   raggedColumn,
}

func parseColumn(text string) (loader.Column, error) {
	t := &columnText{options: make(map[string]string)}
	for i, part := range splitEscaped(text, ':') {
		name, value, option := strings.Cut(part, "=")
		switch {
		case i == 0:
			t.kind = part
		case i == 1:
			t.field = unescaped(part)
		case option:
			t.options[name] = unescaped(value)
		default:
			t.words = append(t.words, part)
		}
	}
	kind, ok := columnKinds[t.kind]
	if !ok {
		return loader.Column{}, fmt.Errorf("no kind of column: they are image, int64, float32, dense, padded, ragged, bytes, key and location")
	}
	switch bare := t.kind == "key" || t.kind == "location"; {
	case bare && t.field != "":
		return loader.Column{}, fmt.Errorf("%s has no field", t.kind)
	case t.kind == "image" && t.field == "":
		t.field = pictureFields
	case !bare && t.field == "":
		return loader.Column{}, fmt.Errorf("the field is missing")
	}
	hole := t.word("hole")
	c, err := kind(t)
	if err != nil {
		return c, err
	}
	if hole {
		c = c.OrHole()
	}
	if text, ok := t.option("or"); ok {
		value, err := defaultValue(t.kind, text)
		if err != nil {
			return c, err
		}
		c = c.Or(value)
	}
	if len(t.words) > 0 {
		return c, fmt.Errorf("%q means nothing to %s", t.words[0], t.kind)
	}
	for name := range t.options {
		return c, fmt.Errorf("%q means nothing to %s", name+"=", t.kind)
	}
	return c, c.Check()
}

// word takes a word, if it is there.
func (t *columnText) word(w string) bool {
	i := slices.Index(t.words, w)
	if i < 0 {
		return false
	}
	t.words = slices.Delete(t.words, i, i+1)
	return true
}

// next takes the next word; "" if there is none.
func (t *columnText) next() string {
	if len(t.words) == 0 {
		return ""
	}
	w := t.words[0]
	t.words = t.words[1:]
	return w
}

func (t *columnText) option(name string) (string, bool) {
	v, ok := t.options[name]
	delete(t.options, name)
	return v, ok
}

func imageColumn(t *columnText) (loader.Column, error) {
	eval := t.word("eval")
	size := 224
	if w := t.next(); w != "" {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 || n > 8192 {
			return loader.Column{}, fmt.Errorf("the size %q is not within 1 to 8192", w)
		}
		size = n
	}
	if eval {
		return loader.Image(t.field, augment.ImageNetEval(size)), nil
	}
	return loader.Image(t.field, augment.ImageNetTrain(size)), nil
}

func (t *columnText) dtype() (tensor.DType, error) {
	w := t.next()
	for d := tensor.Float32; d <= tensor.Bool; d++ {
		if d.String() == w {
			return d, nil
		}
	}
	return 0, fmt.Errorf("the type %q is none: float32, int64, uint8 and so on", w)
}

// shape reads 3x224x224.
func shape(text string) ([]int, error) {
	var s []int
	for one := range strings.SplitSeq(text, "x") {
		n, err := strconv.Atoi(one)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("the shape %q is none: write 4 or 3x224x224", text)
		}
		s = append(s, n)
	}
	return s, nil
}

func denseColumn(t *columnText) (loader.Column, error) {
	d, err := t.dtype()
	if err != nil {
		return loader.Column{}, err
	}
	s, err := shape(t.next())
	return loader.Dense(t.field, d, s...), err
}

func raggedColumn(t *columnText) (loader.Column, error) {
	d, err := t.dtype()
	if err != nil {
		return loader.Column{}, err
	}
	var inner []int
	if w := t.next(); w != "" {
		inner, err = shape(w)
	}
	return loader.Ragged(t.field, d, inner...), err
}

func paddedColumn(t *columnText) (loader.Column, error) {
	o := &loader.PadOptions{Truncate: t.word("truncate")}
	d, err := t.dtype()
	if err != nil {
		return loader.Column{}, err
	}
	length, err := strconv.Atoi(t.next())
	if err != nil {
		return loader.Column{}, fmt.Errorf("the length is missing, as in padded:%s:%s:512", t.field, d)
	}
	if text, ok := t.option("pad"); ok {
		if o.Value, err = strconv.ParseFloat(text, 64); err != nil {
			return loader.Column{}, fmt.Errorf("pad=%s is no number", text)
		}
	}
	if text, ok := t.option("inner"); ok {
		if o.Inner, err = shape(text); err != nil {
			return loader.Column{}, err
		}
	}
	if text, ok := t.option("buckets"); ok {
		for one := range strings.SplitSeq(text, ";") {
			n, err := strconv.Atoi(one)
			if err != nil {
				return loader.Column{}, fmt.Errorf("buckets=%s: lengths by semicolons", text)
			}
			o.Buckets = append(o.Buckets, n)
		}
	}
	return loader.Padded(t.field, d, length, o), nil
}

// defaultValue reads the value of or=: a text for bytes, a number, or for lists
// numbers by semicolons.
func defaultValue(kind, text string) (any, error) {
	if kind == "bytes" {
		return text, nil
	}
	var whole []int64
	var floats []float64
	for one := range strings.SplitSeq(text, ";") {
		f, err := strconv.ParseFloat(one, 64)
		if err != nil {
			return nil, fmt.Errorf("or=%s: numbers by semicolons", text)
		}
		floats = append(floats, f)
		if n, err := strconv.ParseInt(one, 10, 64); err == nil {
			whole = append(whole, n)
		}
	}
	list := kind == "padded" || kind == "ragged" || len(floats) > 1
	switch exact := len(whole) == len(floats); {
	case list && exact:
		return whole, nil
	case list:
		return floats, nil
	case exact:
		return whole[0], nil
	}
	return floats[0], nil
}
