// Package codec turns fields into values: the members of a WebDataset tar by
// their suffixes, the features of an Example by their kinds.
//
// For whoever looks at samples, [Decode] returns a [Value] of the type that
// webdataset's autodecode gives a suffix. The last part of a dotted name counts,
// in any case: "seg.PNG" is a png.
//
//	cls cls2 index inx id      Int64   decimal digits, white space around them
//	txt text transcript        Text    UTF-8
//	json jsn                   JSON    numbers as json.Number, to the last digit
//	npy                        Array   NumPy's .npy: NEP 1, versions 1 to 3
//	npz                        Arrays  a zip archive of .npy, stored or deflated
//	ten tb                     List    webdataset's tenbin, see below
//	jpg jpeg png webp gif      Image   the bytes, untouched
//	*.gz                               what the rest of the name says, inflated
//	bin bytes, and all others  Bytes
//
// What Python alone can read (pkl, pickle, pyd, pth), or what is not read here
// (mp, msg, cbor), is ErrUnsupported; [Options.Codecs] can say otherwise.
//
// For batches, [Fill], [FillRows], [AppendRows], [AppendInt64] and so on write
// the numbers of a field into the caller's memory and allocate nothing. They
// read npy, a ten of one array, json (nested lists give the shape), one number
// as text (cls, txt and so on), the raw elements of every other byte string,
// lowest byte first, and the lists of an Example; of the steps of a
// SequenceExample, and of the strings of a list, each is a place of the first
// axis. Numbers are converted where that is exact, and floats may be rounded;
// anything else is ErrSchema:
//
//	to \ from   integer, bool     float
//	integer     in its range      no
//	bool        0 and 1           no
//	float       if exact          rounded to the nearest; not to an infinity
//
// A uint64 beyond the largest int64 fits a Uint64 and nothing else.
//
// A tenbin file is chunks, in pairs of a header and the elements, all numbers
// int64 and lowest byte first:
//
//	"~TenBin~" length bytes, zeros up to a multiple of 64   a chunk
//	"f4\0\0\0\0\0\0" name(8) ndim dim...                    the bytes of a header
//
// Errors are an *format.Error whose Location knows the field; the caller adds
// the rest with format.ReadError. ErrSchema says what was found and what was
// wanted, as in
//
//	(field "cls"): schema: found float list of 3 values, want one int64
package codec

import (
	"context"
	"errors"
	"strings"

	"shardtool/format"
)

// Options says how fields are decoded. Nil and the zero value work.
type Options struct {
	Limits *format.Limits // Record bounds what a .gz or a .npz inflates to, and all arrays of a .npz together

	// Codecs go before those of the package. The name is one suffix or several,
	// such as "seg.png" or "msg", in lower case; of those that fit the longest
	// counts.
	Codecs map[string]Codec
}

// Codec decodes the bytes of a field. The value may refer to data.
type Codec func(data []byte, o *Options) (Value, error)

// form is how the numbers of a byte string are found.
type form uint8

const (
	formRaw    form = iota // elements, lowest byte first
	formText               // one number
	formJSON               // nested lists of numbers
	formArray              // one array
	formInts               // an Int64List
	formFloats             // a FloatList
	formParts              // byte strings or steps
	formNone               // a step without a value
)

// suffix is what the last part of a name says.
type suffix struct {
	codec Codec
	form  form
	none  string // what it is, if there are no numbers to be found in it
}

var (
	intSuffix   = suffix{decodeInt64, formText, ""}
	textSuffix  = suffix{decodeText, formText, ""}
	jsonSuffix  = suffix{decodeJSON, formJSON, ""}
	tenSuffix   = suffix{decodeTen, formArray, ""}
	imageSuffix = suffix{decodeImage, formRaw, "an encoded image"}
	rawSuffix   = suffix{decodeBytes, formRaw, ""}
	pickled     = suffix{unsupported("a pickle, which only Python reads, and which can run code there; write npy, npz or json"), formRaw, "a pickle"}
	packed      = suffix{unsupported("of a kind that is not read here; write json or npy, or give a codec"), formRaw, "of a kind that is not read here"}
)

var suffixes = map[string]suffix{
	"cls": intSuffix, "cls2": intSuffix, "index": intSuffix, "inx": intSuffix, "id": intSuffix,
	"txt": textSuffix, "text": textSuffix, "transcript": textSuffix,
	"json": jsonSuffix, "jsn": jsonSuffix,
	"npy": {decodeNPY, formArray, ""},
	"npz": {decodeNPZ, formRaw, "an archive of arrays"},
	"ten": tenSuffix, "tb": tenSuffix,
	"jpg": imageSuffix, "jpeg": imageSuffix, "png": imageSuffix, "webp": imageSuffix, "gif": imageSuffix,
	"bin": rawSuffix, "bytes": rawSuffix,
	"pkl": pickled, "pickle": pickled, "pyd": pickled, "pth": pickled,
	"mp": packed, "msg": packed, "cbor": packed,
}

// lookup returns what the last part of a name says. It allocates nothing.
func lookup(name string) suffix {
	var lower [len("transcript")]byte
	last := name[strings.LastIndexByte(name, '.')+1:]
	if len(last) > len(lower) {
		return rawSuffix
	}
	for i := range len(last) {
		lower[i] = last[i]
		if 'A' <= last[i] && last[i] <= 'Z' {
			lower[i] += 'a' - 'A'
		}
	}
	if s, ok := suffixes[string(lower[:len(last)])]; ok {
		return s
	}
	return rawSuffix
}

// Decode returns the value of a field by its name, or the suffix of it that
// counts; see the package comment. The value may refer to data, and is good for
// as long as data is.
func Decode(name string, data []byte, o *Options) (Value, error) {
	if o == nil {
		o = new(Options)
	}
	v, err := decode(name, data, o)
	if err != nil {
		return Value{}, inField(err, name)
	}
	return v, nil
}

func decode(name string, data []byte, o *Options) (Value, error) {
	if c := o.codec(name); c != nil {
		return c(data, o)
	}
	if rest, ok := cutGzip(name); ok {
		data, err := inflate(data, o.Limits)
		if err != nil {
			return Value{}, err
		}
		if c := o.codec(rest); c != nil {
			return c(data, o)
		}
		return lookup(rest).codec(data, o)
	}
	return lookup(name).codec(data, o)
}

// codec returns the caller's codec that fits the most of a name, or nil.
func (o *Options) codec(name string) Codec {
	if len(o.Codecs) == 0 {
		return nil
	}
	name = strings.ToLower(name)
	for {
		if c := o.Codecs[name]; c != nil {
			return c
		}
		i := strings.IndexByte(name, '.')
		if i < 0 {
			return nil
		}
		name = name[i+1:]
	}
}

func decodeBytes(data []byte, _ *Options) (Value, error) { return OfBytes(data), nil }

func decodeImage(data []byte, _ *Options) (Value, error) { return OfImage(data), nil }

func unsupported(what string) Codec {
	return func([]byte, *Options) (Value, error) {
		return Value{}, format.Errorf(format.ErrUnsupported, format.Nowhere, "the field is %s", what)
	}
}

// inField gives an error the name of its field. One that is of no class, which
// a caller's codec may return, is ErrSchema: the bytes are not what their name
// says.
func inField(err error, name string) error {
	at := format.Nowhere
	at.Field = name
	cancelled := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if !cancelled && format.AsError(err) == nil {
		return format.Errorf(format.ErrSchema, at, "%w", err)
	}
	return format.ReadError(err, at)
}
