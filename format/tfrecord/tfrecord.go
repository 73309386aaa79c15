// Package tfrecord reads and writes TFRecord shards: a sequence of framed
// records and nothing else, as TensorFlow's lib/io/record_writer.h has it.
//
//	offset  size  of each record
//	0       8     n, the length of the payload, little endian
//	8       4     masked CRC-32C of those eight bytes
//	12      n     payload, often a tf.train.Example (format/tfexample)
//	12+n    4     masked CRC-32C of the payload
//
// A checksum c is stored as (c>>15 | c<<17) + 0xa282ead8. A shard of no bytes
// is a shard of no records. Every checksum is checked.
//
// A [Reader] goes through a stream, [ReadAt] fetches one record by its offset,
// [Scan] lists where the records of a file are without reading them, and a
// [Writer] writes. Streams are plain: whoever opens a shard asks [Sniff], then
// format/compress, and puts the decompressor in between.
//
// # Faults
//
// A stream that ends on a record's end ends in io.EOF; one that ends elsewhere
// is ErrTruncated at the record that is cut. A checksum that does not hold is
// ErrCorrupt, a length over Limits.Record is ErrLimit, and a stream that does
// not begin with a record, nor has one in the bytes at hand, is
// ErrWrongFormat. Every error names the offset of the record's length and the
// number of the record. What happens then is for Options.OnError to say:
//
//	fault                    Stop    Skip                  Resync
//	payload's checksum       error   the record is left out, and reading goes on
//	length over the limit    error   as above              search
//	length's checksum        error   error                 search
//	end inside a record      error   loss, then error      search in what is there, loss, io.EOF
//	broken compression       error   loss, then error      loss, io.EOF
//	not a TFRecord           error   error                 error
//	failure to read          error   error                 error
//
// To search is to go on at the next offset at which both checksums of a frame
// hold. Under Resync a record with a wrong payload whose end does not meet
// another record's beginning is searched as well, for bytes may be missing in
// it. Everything that was passed over is reported to Options.OnLoss, so that
// the bytes delivered, framing included, and the bytes lost make up the
// stream.
package tfrecord
