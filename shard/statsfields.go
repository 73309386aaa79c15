package shard

import (
	"slices"
	"strings"

	"shardtool/augment"
	"shardtool/format"
	"shardtool/format/tfexample"
)

// imageSuffixes are the suffixes under which images stand in tar shards. What
// an image is its content says; the name only says that it should be one.
var imageSuffixes = []string{"jpg", "jpeg", "png", "webp", "gif"}

// lastSuffix splits what follows the last dot off the name of a field: "seg.png"
// is "seg" and "png", "jpg" is "" and "jpg".
func lastSuffix(name string) (stem, suffix string) {
	dot := strings.LastIndexByte(name, '.')
	return name[:max(dot, 0)], name[dot+1:]
}

// namedImage reports whether the name of a field, of a tar or of an Example,
// promises an image.
func namedImage(name string) bool { return name == imageFeature || hasImageSuffix(name) }

func hasImageSuffix(name string) bool {
	_, suffix := lastSuffix(name)
	return slices.ContainsFunc(imageSuffixes, func(s string) bool { return format.EqualName(s, suffix) })
}

// absent reports whether a field only stands in for one that was asked for
// (format.MissingFill).
func absent(f *format.Field) bool { return f.Data == nil && f.Offset == format.Unknown }

// eachImage passes the images of a field to yield, until it returns false: the
// value of a field of bytes, each value of a list of byte strings and of the
// steps of a feature list. all takes every value for one; else either the name
// promises one, or the content begins as one.
func eachImage(f *format.Field, all bool, yield func(data []byte) bool) bool {
	all = all || namedImage(f.Name)
	one := func(data []byte) bool {
		return !all && !augment.StartsAsImage(data) || yield(data)
	}
	feature := tfexample.FeatureOf(f.Kind, f.Data)
	switch f.Kind {
	case format.Bytes:
		return absent(f) || one(f.Data)
	case format.BytesList:
		for v := range feature.Bytes() {
			if !one(v) {
				return false
			}
		}
	case format.FeatureList:
		for _, step := range feature.Steps() {
			for v := range step.Bytes() {
				if !one(v) {
					return false
				}
			}
		}
	}
	return true
}
