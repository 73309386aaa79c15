package codec

import (
	"errors"

	"shardtool/format"
	"shardtool/tensor"
)

func decodeNPY(data []byte, _ *Options) (Value, error) {
	d, err := tensor.ReadNPY(data)
	if err != nil {
		return Value{}, npyError(err)
	}
	return OfDense(d), nil
}

var npyFaults = map[error]error{
	tensor.ErrNotNPY:         format.ErrWrongFormat,
	tensor.ErrNPYTruncated:   format.ErrTruncated,
	tensor.ErrNPYCorrupt:     format.ErrCorrupt,
	tensor.ErrNPYUnsupported: format.ErrUnsupported,
}

// npyError gives a fault of a .npy its class.
func npyError(err error) error {
	var e *tensor.NPYError
	if !errors.As(err, &e) {
		return err
	}
	return format.Errorf(npyFaults[e.Err], format.Nowhere, "%s", "a .npy: "+e.Detail)
}
