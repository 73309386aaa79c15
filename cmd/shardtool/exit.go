package main

import (
	"errors"

	"shardtool/format"
)

// The exit codes. A run that meets several faults ends with the largest.
const (
	exitFine  = 0
	exitFault = 1 // the data has faults
	exitUsage = 2 // the command was put wrongly
	exitIO    = 3 // something could not be read or written
)

// exitCode maps an error by its class: what is wrong with the data is 1, with
// the request 2, with reading or writing 3.
func exitCode(err error) int {
	var said *saidError
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &said):
		return said.code
	}
	switch format.Class(err) {
	case format.ErrUsage.Error():
		return exitUsage
	case format.ErrNotFound.Error(), format.ErrDenied.Error(), format.ErrIO.Error():
		return exitIO
	default:
		return exitFault
	}
}

// saidError ends a verb whose faults have been reported already.
type saidError struct{ code int }

func (e *saidError) Error() string { return "faults were reported" }

// usageError is a request that cannot be met as put: exit code 2.
func usageError(msg string, args ...any) error {
	return format.Errorf(format.ErrUsage, format.Nowhere, msg, args...)
}
