package shard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"shardtool/format"
	"shardtool/reader/store"
)

// Columns of a list that have a meaning; all others go into the field json.
const (
	pathColumn  = "path"  // of a file, from the folder; required
	keyColumn   = "key"   // of the sample; else the path up to the first dot of its last element
	labelColumn = "label" // becomes the field cls
)

// row is a line of a list.
type row struct {
	line   int
	paths  []string
	key    string
	label  *string
	others []member
}

// member is a column without a meaning: its name and its value as JSON.
type member struct {
	name  string
	value json.RawMessage
}

// readList reads the samples that a list names. A list is CSV, whose first
// line names the columns, or JSON Lines, an object a line, told by its first
// byte. The column path names a file, in JSON also an array of files; its
// name after the first dot is the field. label becomes the field cls, key the
// key. What else there is becomes the field json, an object. Paths are from
// the folder, or from where the list is if folder is "".
func readList(ctx context.Context, folder string, o *PackOptions) ([]packed, error) {
	r, err := store.OpenStream(ctx, o.Store, o.List)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if folder == "" && o.List != "-" {
		folder = filepath.Dir(o.List)
	}
	in := bufio.NewReader(r)
	rows := csvRows
	if head, _ := in.Peek(1); bytes.Equal(head, []byte("{")) {
		rows = jsonRows
	}
	l := list{name: o.List, folder: folder, lines: make(map[string]int)}
	if err := rows(in, l.add); err != nil {
		return nil, format.ReadError(err, format.In(o.List))
	}
	return l.samples, nil
}

type list struct {
	name, folder string
	samples      []packed
	lines        map[string]int // of the keys
}

func (l *list) add(r row) error {
	if len(r.paths) == 0 || r.paths[0] == "" {
		return l.fault(format.ErrUsage, r.line, "no %s", pathColumn)
	}
	s := packed{key: r.key, line: r.line}
	for _, path := range r.paths {
		key, field, ok := splitName(filepath.ToSlash(path))
		if !ok {
			return l.fault(format.ErrUsage, r.line, "the name of %s has no dot and so no field", path)
		}
		if s.key == "" {
			s.key = key
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.folder, path)
		}
		s.files = append(s.files, packedFile{field, path})
	}
	if before, twice := l.lines[s.key]; twice {
		return l.fault(format.ErrDuplicate, r.line, "the key %q was on line %d", s.key, before)
	}
	l.lines[s.key] = r.line
	if r.label != nil {
		s.made = append(s.made, format.Field{Name: labelField, Data: []byte(*r.label), Offset: format.Unknown})
	}
	if len(r.others) > 0 {
		s.made = append(s.made, format.Field{Name: "json", Data: object(r.others), Offset: format.Unknown})
	}
	l.samples = append(l.samples, s)
	return nil
}

func (l *list) fault(sentinel error, line int, msg string, args ...any) error {
	return format.Errorf(sentinel, format.In(l.name), "line %d: "+msg, append([]any{line}, args...)...)
}

func object(members []member) []byte {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(m.name) // a string always can be
		b = append(append(append(b, name...), ':'), m.value...)
	}
	return append(b, '}')
}

func csvRows(in io.Reader, each func(row) error) error {
	r := csv.NewReader(in)
	r.ReuseRecord = true
	head, err := r.Read()
	if err == io.EOF {
		return nil
	} else if err != nil {
		return listError(err)
	}
	columns := make([]string, len(head))
	for i, name := range head {
		columns[i] = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
	}
	for {
		values, err := r.Read()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return listError(err)
		}
		var one row
		one.line, _ = r.FieldPos(0)
		for i, v := range values {
			v := v
			switch strings.ToLower(columns[i]) {
			case pathColumn:
				one.paths = append(one.paths, v)
			case keyColumn:
				one.key = v
			case labelColumn, labelField:
				one.label = &v
			default:
				text, _ := json.Marshal(v) // a string always can be
				one.others = append(one.others, member{columns[i], text})
			}
		}
		if err := each(one); err != nil {
			return err
		}
	}
}

func listError(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return format.Errorf(format.ErrCorrupt, format.Nowhere, "%w", err)
	}
	return err
}

func jsonRows(in io.Reader, each func(row) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		one, err := jsonRow(text)
		if err != nil {
			return format.Errorf(format.ErrCorrupt, format.Nowhere, "line %d: %w", n, err)
		}
		one.line = n
		if err := each(one); err != nil {
			return err
		}
	}
	return lines.Err()
}

// jsonRow reads an object, keeping the order of its members.
func jsonRow(text []byte) (row, error) {
	var one row
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return one, errors.New("not a JSON object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return one, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return one, err
		}
		switch name := name.(string); name {
		case pathColumn:
			if err = json.Unmarshal(value, &one.paths); err != nil {
				one.paths = []string{""}
				err = json.Unmarshal(value, &one.paths[0])
			}
		case keyColumn:
			err = json.Unmarshal(value, &one.key)
		case labelColumn, labelField:
			label := string(value)
			if value[0] == '"' {
				err = json.Unmarshal(value, &label)
			}
			one.label = &label
		default:
			one.others = append(one.others, member{name, bytes.Clone(value)})
		}
		if err != nil {
			return one, err
		}
	}
	_, err := d.Token()
	return one, err
}
