package compress

import "io"

// source counts what is read of a compressed stream and remembers how it
// ended, which decompressors blur.
type source struct {
	r     io.Reader
	n     int64 // bytes read
	err   error // the error that ended the stream; io.EOF at its end
	empty int   // reads in a row that gave nothing
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	s.n += int64(n)
	if n == 0 && err == nil {
		if s.empty++; s.empty >= 100 {
			err = io.ErrNoProgress
		}
	} else {
		s.empty = 0
	}
	s.err = err
	return n, err
}

// failed returns the error that ended the stream, unless that was its end.
func (s *source) failed() error {
	if s.err == io.EOF {
		return nil
	}
	return s.err
}
