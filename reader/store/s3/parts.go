package s3

// The parts of an upload. S3 takes at most 10,000, of 5 MiB to 5 GiB each (the
// last may be smaller), of an object of at most 5 TiB, whose size is not known
// when the first part is sent. So parts double every so often:
//
//	part      0 ..  799    8 MiB     up to    6.25 GiB
//	part    800 .. 1599   16 MiB     up to   18.75 GiB
//	...
//	part   5600 .. 9999    1 GiB     up to    5.07 TiB
const (
	maxParts       = 10_000
	firstPart      = 8 << 20
	partsOfOneSize = 800
	largestPart    = 1 << 30
)

// partSize returns the size of a part, numbered from 0.
func partSize(n int) int64 {
	return min(int64(firstPart)<<(n/partsOfOneSize), largestPart)
}

// window is how many bytes of an upload may be on their way at a time: six
// parts of the first size. One part is always sent, however large.
const window = 48 << 20
