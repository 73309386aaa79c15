// Package remote reads the bytes of objects behind requests that may fail. It
// knows no protocol: a driver answers one request (Getter), and the package
// makes of many such answers a store.Object whose bytes are exactly the
// object's, or an error that says which byte was reached and why no more came.
//
//	      ┌─ range 0 ─┬─ range 1 ─┬─ range 2 ─┬─ last ─┐
//	object│###########│#####......│##.........│        │   # arrived, . asked for
//	      └───────────┴───────────┴───────────┴────────┘
//	           ▲ reader   "bytes=8388608-16777215"  "bytes=25165824-"
//
// A sequential read (store.Stream) asks for some ranges at a time. Each is read
// to its end into pooled memory as it arrives, so that a slow reader holds
// memory, which is bounded, and never a connection. The reader gets the bytes
// of its range as they come. An object of at most one range is one request,
// without a Range header. A read at an offset is one request of exactly its
// bytes.
//
// What holds for every read:
//
//   - A request that is cut (reset, timeout, no byte for Options.Stall, an
//     answer shorter than it said) is resumed from the first byte that is
//     missing. Options.Attempts tries in a row without a byte are ErrIO, or
//     ErrTruncated where each ended cleanly and early. Waits between tries grow
//     by doubling and are drawn at random below that bound.
//   - The version of the first answer is asked for (If-Match) ever after: an
//     object that was replaced is ErrStale and never a mixture.
//   - 503 and 429 halve the number of requests that may be in flight, once for
//     all that were in flight together; every success adds one again. What
//     Retry-After says is waited, up to five minutes.
//   - A checksum of the full object, where the server sent one, is held against
//     a read from the first byte to the last. A mismatch is ErrCorrupt in place
//     of io.EOF.
//   - Errors and logs name addresses without what their query says: Redact.
package remote
