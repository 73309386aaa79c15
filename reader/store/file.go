package store

import (
	"context"
	"io"
	"os"
	"sync"

	"shardtool/format"
)

// file is an open regular file. It reads with pread, never by mapping: a mapped
// file that is truncated under its reader kills the process.
type file struct {
	f      *os.File
	entry  Entry
	random bool
	once   sync.Once // advice for reading in order
}

func (f *file) Stat() Entry { return f.entry }

func (f *file) Close() error { return nameError(f.entry.Name, f.f.Close()) }

func (f *file) Gap() int64 { return localGap }

func (f *file) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, negativeOffset(f.entry.Name, off)
	}
	end := false
	if left := max(f.entry.Size-off, 0); int64(len(p)) > left {
		// What was appended since the file was opened is not part of it.
		p, end = p[:left], true
	}
	n, err := f.f.ReadAt(p, off)
	switch {
	case n == len(p) && end:
		return n, io.EOF
	case n == len(p):
		return n, nil
	case err == io.EOF:
		loc := format.Location{Shard: f.entry.Name, Offset: off + int64(n), Record: format.Unknown}
		return n, format.Errorf(format.ErrTruncated, loc, "the file had %d bytes when it was opened and is shorter now", f.entry.Size)
	default:
		return n, nameError(f.entry.Name, err)
	}
}

func (f *file) Stream(ctx context.Context, off int64) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if off < 0 {
		return nil, negativeOffset(f.entry.Name, off)
	}
	if !f.random {
		f.once.Do(func() { adviseSequential(f.f) })
	}
	return &fileStream{ctx: ctx, f: f, off: off}, nil
}

func negativeOffset(name string, off int64) error {
	return format.Errorf(format.ErrUsage, format.In(name), "the offset %d is negative", off)
}

// Sizes of reads in order, from BenchmarkFileStream with other values of them:
//
//   - Small reads go through a buffer. Of a plain loop of 1 MiB preads of a cached
//     file, one of 1 MiB gives 0.5 of the speed at reads of 512 bytes and 0.7 at 4
//     KiB, where one of 256 KiB gives 0.4 and none 0.05 and 0.2.
//   - Reads of 128 KiB and more go straight to their destination: 0.6 of that
//     speed against 0.4 through the buffer at 128 KiB, and all of it at 1 MiB.
//   - The first read ahead is small: many a stream is read for its head alone.
//
// Of a file that is not cached, reads of 256 KiB and more have twice the speed of
// reads of 64 KiB, and posix_fadvise(SEQUENTIAL), which doubles the window that
// the kernel reads ahead, gives the smaller ones up to 1.6 times theirs. WILLNEED
// some MiB ahead was half as fast there, and a tenth slower where all is cached;
// a goroutine that reads ahead costs one more copy. Neither is done.
const (
	firstAhead = 64 << 10
	readAhead  = 1 << 20
	directRead = 128 << 10
)

var firstBuffers = sync.Pool{New: func() any { return new([firstAhead]byte) }}
var aheadBuffers = sync.Pool{New: func() any { return new([readAhead]byte) }}

// fileStream reads a file in order.
type fileStream struct {
	ctx context.Context
	f   *file
	off int64 // of the next read of the file

	buf   []byte // read ahead and not delivered yet
	first *[firstAhead]byte
	ahead *[readAhead]byte
	begun bool // a first buffer has been read
}

func (s *fileStream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if len(s.buf) == 0 {
		if s.off >= s.f.entry.Size {
			s.release()
			return 0, io.EOF
		}
		if len(p) >= directRead {
			s.release() // a reader of large pieces holds no buffer
			n, err := s.f.ReadAt(s.ctx, p, s.off)
			s.off += int64(n)
			if n > 0 && err == io.EOF {
				err = nil
			}
			return n, err
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

// fill reads into a buffer. An error comes only with no byte before it.
func (s *fileStream) fill() error {
	var buf []byte
	if !s.begun {
		s.begun = true
		s.first = firstBuffers.Get().(*[firstAhead]byte)
		buf = s.first[:]
	} else {
		if s.ahead == nil {
			s.release()
			s.ahead = aheadBuffers.Get().(*[readAhead]byte)
		}
		buf = s.ahead[:]
	}
	n, err := s.f.ReadAt(s.ctx, buf, s.off)
	s.off += int64(n)
	s.buf = buf[:n]
	if n > 0 {
		return nil // an error will be met again
	}
	return err
}

func (s *fileStream) release() {
	s.buf = nil
	if s.first != nil {
		firstBuffers.Put(s.first)
		s.first = nil
	}
	if s.ahead != nil {
		aheadBuffers.Put(s.ahead)
		s.ahead = nil
	}
}

// Close ends the stream at the size of the file, so that a read after it finds
// the end and no buffer.
func (s *fileStream) Close() error {
	s.release()
	s.off = s.f.entry.Size
	return nil
}
