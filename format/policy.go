package format

// OnError says what a reader does at a fault.
type OnError uint8

const (
	// Stop ends reading with the error. The default.
	Stop OnError = iota
	// Skip leaves out what is faulty and goes on where the structure of the
	// shard still says where the next record or member begins; otherwise it
	// ends with the error.
	Skip
	// Resync does what Skip does and, where the structure is broken, searches
	// for the next place at which it holds again.
	Resync
)

// String returns the word that commands use: stop, skip or resync.
func (o OnError) String() string { return [...]string{"stop", "skip", "resync"}[o] }

// OnDuplicate says what a reader does when a sample has a field twice.
type OnDuplicate uint8

const (
	DuplicateError OnDuplicate = iota // ErrDuplicate, naming key and field. The default.
	KeepFirst                         // the later one is skipped and counted
	KeepLast                          // the earlier one is skipped and counted
)

// String returns the word that commands use: error, keep-first or keep-last.
func (o OnDuplicate) String() string { return [...]string{"error", "keep-first", "keep-last"}[o] }

// OnMissing says what a reader does when a sample lacks a field that was asked
// for.
type OnMissing uint8

const (
	MissingError OnMissing = iota // ErrMissing, naming the fields seen. The default.
	MissingSkip                   // the sample is left out and counted
	MissingFill                   // the field is delivered under the name asked for, with nil Data and Offset Unknown
)

// String returns the word that commands use: error, skip or fill.
func (m OnMissing) String() string { return [...]string{"error", "skip", "fill"}[m] }

// Loss is a part of a shard that a reader passed over, or a fault that it
// lived with, under Skip or Resync.
type Loss struct {
	Offset  int64 // first byte passed over, in the decompressed stream
	Bytes   int64 // how many were passed over; 0 for a fault without loss
	Records int64 // how many records or samples that was; Unknown where it cannot be told
	Err     error // why: an *Error
}

// Warning is a fault that a lenient read counts and goes on after. Verifying a
// shard reports it as an error: NoEndMarker as truncated, the others as
// corrupt.
type Warning string

const (
	NoEndMarker     Warning = "no-end-marker"    // a tar without its two zero blocks
	TrailingGarbage Warning = "trailing-garbage" // bytes after the end of the stream that belong to nothing
	Concatenated    Warning = "concatenated"     // another tar follows the end marker
)
