package shard

import (
	"regexp"
	"strconv"
	"strings"

	"shardtool/format"
	"shardtool/format/compress"
)

// outputNumber is the place of a number in a name: %d, or %06d with zeros.
var outputNumber = regexp.MustCompile(`%(0?)([0-9]{0,2})d`)

// Numbered reads the name of an output that may be written in parts, such as
// "train-%06d.tar". It returns the name of part i, from 0, and whether the name
// has a number at all. A per cent sign that begins no number is itself, and in
// an http or https address every one is. Two numbers in a name are ErrUsage.
func Numbered(name string) (part func(i int) string, numbered bool, err error) {
	if isWeb(name) {
		return func(int) string { return name }, false, nil
	}
	at := outputNumber.FindAllStringSubmatchIndex(name, 2)
	switch len(at) {
	case 0:
		return func(int) string { return name }, false, nil
	case 1:
	default:
		return nil, false, outputError(format.ErrUsage, name, "has two numbers; one numbers the parts")
	}
	m := at[0]
	pad := " "
	if m[3] > m[2] {
		pad = "0"
	}
	width, _ := strconv.Atoi(name[m[4]:m[5]])
	return func(i int) string {
		digits := strconv.Itoa(i)
		return name[:m[0]] + strings.Repeat(pad, max(0, width-len(digits))) + digits + name[m[1]:]
	}, true, nil
}

// isWeb reports whether a name is an address of http or https.
func isWeb(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// isFar reports whether a name leads over a network.
func isFar(name string) bool { return strings.HasPrefix(name, "s3://") || isWeb(name) }

// CompressionOf returns the compression that the suffix of a name asks for:
// .gz, .tgz, .zst, .tzst, .zz, .zlib; else none. The query of an address is
// not part of its suffix.
func CompressionOf(name string) compress.Kind {
	if isWeb(name) {
		name, _, _ = strings.Cut(name, "?")
	}
	switch base := strings.ToLower(name); {
	case hasSuffix(base, ".gz", ".gzip", ".tgz"):
		return compress.Gzip
	case hasSuffix(base, ".zst", ".zstd", ".tzst"):
		return compress.Zstd
	case hasSuffix(base, ".zz", ".zlib"):
		return compress.Zlib
	default:
		return compress.None
	}
}

func hasSuffix(s string, suffixes ...string) bool {
	for _, x := range suffixes {
		if strings.HasSuffix(s, x) {
			return true
		}
	}
	return false
}
