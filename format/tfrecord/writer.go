package tfrecord

import (
	"encoding/binary"
	"io"
)

// Writer writes records to a stream. It is for one goroutine.
type Writer struct {
	w      io.Writer
	buf    []byte
	offset int64
	err    error
}

// writeBuffer is how much a Writer collects; what is larger is written past
// the buffer, so that it is not copied.
const writeBuffer = 64 << 10

// NewWriter returns a Writer to w. Flush has to be called at the end. An empty
// shard is a stream of no bytes.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, buf: make([]byte, 0, writeBuffer)}
}

// Reset makes the Writer write to w and forgets what was not flushed.
func (w *Writer) Reset(to io.Writer) {
	w.w, w.buf, w.offset, w.err = to, w.buf[:0], 0, nil
}

// Write writes one record. The payload is not kept. An error of the stream is
// returned as it is, by this call or a later one, and by all after it.
func (w *Writer) Write(payload []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(w.buf)+len(payload)+Overhead > cap(w.buf) {
		w.flush()
	}
	w.offset += int64(len(payload)) + Overhead
	if len(payload)+Overhead <= cap(w.buf) {
		w.buf = AppendFrame(w.buf, payload)
		return w.err
	}
	w.buf = appendHeader(w.buf, len(payload))
	w.flush()
	if w.err == nil {
		_, w.err = w.w.Write(payload)
	}
	w.buf = binary.LittleEndian.AppendUint32(w.buf, payloadSum(payload))
	return w.err
}

// Offset returns where in the stream the next record begins, in bytes.
func (w *Writer) Offset() int64 { return w.offset }

// Flush writes what was collected.
func (w *Writer) Flush() error {
	w.flush()
	return w.err
}

func (w *Writer) flush() {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
}
