package shard

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"shardtool/format"
	"shardtool/format/tfexample"
	"shardtool/reader"
)

// Mapping says how fields are named on the other side of a conversion.
type Mapping struct {
	Rename map[string]string // from the field's name in the input, without regard to case, to its name in the output
	Drop   []string          // fields left out
	Preset Preset
}

// Preset is a mapping for a common layout of data sets.
type Preset uint8

const (
	NoPreset Preset = iota
	// ImageNet maps, between TFRecord and tar, image/encoded to jpg, png or
	// what the picture is, and image/class/label, one whole number, to cls,
	// its digits.
	ImageNet
)

// String returns the word that commands use: none or imagenet.
func (p Preset) String() string { return [...]string{"none", "imagenet"}[p] }

const (
	imageFeature  = "image/encoded"
	formatFeature = "image/format"
	labelFeature  = "image/class/label"
	labelField    = "cls"
)

// mapper turns samples of one format into samples of another. What it returns
// is lent until its next call, and refers to the sample it was made from.
type mapper struct {
	Mapping
	explicitKeys bool // see RecordLayout

	out format.Sample
}

func (m *mapper) start(s *format.Sample) {
	m.out = format.Sample{Shard: s.Shard, Index: s.Index, Offset: s.Offset, Key: s.Key, Fields: m.out.Fields[:0]}
}

func (m *mapper) add(f format.Field) { m.out.Fields = append(m.out.Fields, f) }

// renamed returns the name that a field gets by Rename, and whether it is kept.
func (m *mapper) renamed(name string) (to string, renamed, keep bool) {
	same := func(other string) bool { return format.EqualName(name, other) }
	if slices.ContainsFunc(m.Drop, same) {
		return "", false, false
	}
	for from, to := range m.Rename {
		if same(from) {
			return to, true, true
		}
	}
	return name, false, true
}

// same maps within one format: names only.
func (m *mapper) same(s *format.Sample) (*format.Sample, error) {
	m.start(s)
	return m.each(s, s.Fields, func(f format.Field, to string, _ bool) error {
		f.Name = to
		m.add(f)
		return nil
	})
}

// idle reports whether names stay as they are.
func (m *mapper) idle() bool { return len(m.Rename) == 0 && len(m.Drop) == 0 && m.Preset == NoPreset }

// verbatim maps a record's sample to itself, to the byte.
func (m *mapper) verbatim(s *format.Sample) (*format.Sample, error) {
	m.start(s)
	m.add(format.Field{Name: reader.RawField, Data: s.Record, Offset: s.Offset})
	return &m.out, nil
}

// each maps the fields of s that are kept, one by one.
func (m *mapper) each(s *format.Sample, fields []format.Field, one func(f format.Field, to string, renamed bool) error) (*format.Sample, error) {
	for _, f := range fields {
		to, renamed, keep := m.renamed(f.Name)
		if !keep {
			continue
		}
		if err := one(f, to, renamed); err != nil {
			at := s.Location()
			at.Field = f.Name
			return nil, format.ReadError(err, at)
		}
	}
	return &m.out, nil
}

// toTar maps a record's sample to a tar sample.
func (m *mapper) toTar(s *format.Sample) (*format.Sample, error) {
	m.start(s)
	m.out.Key = []byte(encodeKey(string(s.Key)))
	fields := s.Fields
	if startsWithKey(s) && !m.explicitKeys {
		fields = fields[1:] // the key says it
	}
	out, err := m.each(s, fields, m.fieldToTar)
	switch {
	case err != nil:
		return nil, err
	case !m.explicitKeys && !holdsKey(s.Fields, string(s.Key)):
		m.mark(noKey)
	case len(out.Fields) == 0:
		m.mark(noFields)
	}
	return out, nil
}

// Fields in a tar that are no features. noFields is the one field of a record
// that has none, which would vanish there otherwise. noKey is in a record
// without the feature __key__ where others have it.
const (
	noFields = "%none"
	noKey    = "%nokey"
)

func (m *mapper) mark(name string) {
	m.add(format.Field{Name: name, Data: []byte{}, Offset: format.Unknown})
}

func isMark(f format.Field, name string) bool { return f.Name == name && f.Size() == 0 }

// holdsKey reports whether one of the fields is the feature __key__ with that
// key, as it is named in a record or in a tar.
func holdsKey(fields []format.Field, key string) bool {
	return slices.ContainsFunc(fields, func(f format.Field) bool {
		name, _ := decodeField(f.Name)
		return f.Kind == format.Bytes && name == reader.KeyFeature && string(f.Data) == key
	})
}

// startsWithKey reports whether the first field of a record's sample is its
// key.
func startsWithKey(s *format.Sample) bool {
	return s.Key != nil && len(s.Fields) > 0 && s.Fields[0].Name == reader.KeyFeature
}

func (m *mapper) fieldToTar(f format.Field, to string, renamed bool) error {
	feature := tfexample.FeatureOf(f.Kind, f.Data)
	number := f.Kind == format.Int64List && feature.Len() == 1
	switch {
	case m.Preset == ImageNet && !renamed && f.Name == imageFeature && f.Kind == format.Bytes:
		to = pictureSuffix(f.Data)
	case m.Preset == ImageNet && !renamed && f.Name == labelFeature && number:
		to, renamed = labelField, true
	}
	f.Name = to
	var err error
	switch {
	case f.Kind == format.Bytes:
	case number && renamed:
		// Who names a field wants it as WebDataset has it: a number is its digits.
		f.Data, err = digits(feature)
		f.Kind = format.Bytes
	default:
		f.Data, err = encodeValues(nil, feature)
	}
	if err != nil {
		return err
	}
	f.Name, f.Kind = encodeField(f), format.Bytes
	if other := fieldNamed(m.out.Fields, f.Name); other != nil {
		return format.Errorf(format.ErrDuplicate, format.Nowhere,
			"in a tar it would be named as another field of the sample, %s; fields are told apart without regard to case there", other.Name)
	}
	m.add(f)
	return nil
}

// fieldNamed returns the field of that name, without regard to case, or nil. In
// a name that a shard gives, a semicolon is a character like any other, and not
// what Sample.Field makes of it.
func fieldNamed(fields []format.Field, name string) *format.Field {
	i := slices.IndexFunc(fields, func(f format.Field) bool { return format.EqualName(f.Name, name) })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

func digits(f tfexample.Feature) ([]byte, error) {
	vs, err := f.AppendInt64(nil)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(nil, vs[0], 10), nil
}

// pictureSuffix names what a picture is by its first bytes; "jpg" where that
// is not known.
func pictureSuffix(data []byte) string {
	switch mime := http.DetectContentType(data); mime {
	case "image/png", "image/gif", "image/webp", "image/bmp":
		return strings.TrimPrefix(mime, "image/")
	}
	return "jpg"
}

// toRecord maps a tar sample to the sample of a record.
func (m *mapper) toRecord(s *format.Sample) (*format.Sample, error) {
	m.start(s)
	fields := s.Fields
	key := decodeKey(string(s.Key))
	unkeyed := m.explicitKeys || len(fields) > 0 && holdsKey(fields[1:], key) // in the first place toTar leaves it out
	switch last := len(fields) - 1; {
	case last < 0:
	case isMark(fields[last], noKey):
		fields, unkeyed = fields[:last], true
	case last == 0 && isMark(fields[0], noFields):
		fields = nil
	}
	if !unkeyed {
		m.add(format.Field{Name: reader.KeyFeature, Data: []byte(key), Offset: format.Unknown})
	}
	out, err := m.each(s, fields, func(f format.Field, to string, renamed bool) error {
		m.fieldToRecord(s, f, to, renamed)
		return nil
	})
	if err != nil {
		return nil, err
	}
	type feature struct {
		name string
		list bool // the context and the lists of a SequenceExample are apart
	}
	names := make(map[feature]bool, len(out.Fields))
	for _, f := range out.Fields {
		this := feature{f.Name, f.Kind == format.FeatureList}
		if names[this] {
			at := s.Location()
			at.Field = f.Name
			return nil, format.Errorf(format.ErrDuplicate, at, "two fields of the sample would be this feature")
		}
		names[this] = true
	}
	return out, nil
}

func (m *mapper) fieldToRecord(s *format.Sample, f format.Field, to string, renamed bool) {
	if m.Preset == ImageNet && !renamed && m.imageNet(s, f) {
		return
	}
	name, kind := decodeField(f.Name)
	if kind != format.Bytes {
		data, err := decodeValues(nil, kind, f.Data)
		if err != nil { // it only looks like one of ours
			name, kind = f.Name, format.Bytes
		} else {
			f.Data = data
		}
	}
	if renamed {
		name = to
	}
	f.Name, f.Kind = name, kind
	m.add(f)
}

// imageNet maps a field by the preset, if it is one of the preset's.
func (m *mapper) imageNet(s *format.Sample, f format.Field) bool {
	switch strings.ToLower(f.Name) {
	case "jpg", "jpeg", "png", "webp", "gif", "bmp":
		f.Name = imageFeature
		m.add(f)
		if s.Field(fieldName(formatFeature, format.Bytes, false)) == nil {
			name := strings.ToUpper(strings.Replace(pictureSuffix(f.Data), "jpg", "jpeg", 1))
			m.add(format.Field{Name: formatFeature, Data: []byte(name), Offset: format.Unknown})
		}
		return true
	case labelField:
		v, err := strconv.ParseInt(strings.TrimSpace(string(f.Data)), 10, 64)
		if err != nil {
			return false
		}
		f.Name, f.Kind, f.Data = labelFeature, format.Int64List, tfexample.Int64Of(v).Encoded()
		m.add(f)
		return true
	}
	return false
}
