package format

// Limits bounds what a reader will hold because its input says so. A length
// that is over its bound is ErrLimit before anything is allocated for it, and
// memory grows with the bytes that arrive, not with the length that was
// claimed. A field that is zero stands for its default; a nil *Limits is all
// defaults.
type Limits struct {
	Record       int64 // bytes of one TFRecord payload, or of one tar member that is read into memory; default 1 GiB
	Sample       int64 // bytes of all fields of one sample; default 2 GiB
	Fields       int   // fields of one sample; default 65,536
	Header       int64 // bytes of one tar extension header (PAX, GNU long name); default 1 MiB
	Keys         int64 // bytes spent on detecting keys that come back in one shard; default 64 MiB, 16 or fewer a sample
	Links        int64 // bytes spent on remembering members that links may name, in one shard; default 16 MiB
	Decompressed int64 // bytes that one compressed stream may inflate to; default 1 TiB
	Window       int64 // bytes of a zstd window; default 128 MiB
	Index        int64 // bytes of one index file; default 1 GiB
	Pixels       int64 // width times height of one image; default 2^28
	Scans        int64 // scans of one JPEG; default 500
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// OrDefault returns the limits with each zero field replaced by its default.
// It accepts nil.
func (l *Limits) OrDefault() Limits {
	var d Limits
	if l != nil {
		d = *l
	}
	or(&d.Record, gib)
	or(&d.Sample, 2*gib)
	or(&d.Header, mib)
	or(&d.Keys, 64*mib)
	or(&d.Links, 16*mib)
	or(&d.Decompressed, 1024*gib)
	or(&d.Window, 128*mib)
	or(&d.Index, gib)
	or(&d.Pixels, 1<<28)
	or(&d.Scans, 500)
	if d.Fields == 0 {
		d.Fields = 65_536
	}
	return d
}

func or(v *int64, d int64) {
	if *v == 0 {
		*v = d
	}
}
