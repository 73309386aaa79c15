package tarshard

import "bytes"

// fitsPlain reports whether a name can stand in a ustar header: ASCII, and 100
// bytes or, cut at a slash, up to 155 and up to 100.
func fitsPlain(name []byte) bool {
	return isPlain(name) && (len(name) <= 100 || cutName(name) > 0)
}

func isPlain[T string | []byte](name T) bool {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return false
		}
	}
	return true
}

// cutFits reports whether a longer name that begins with key, which has all of
// its slashes, can be cut.
func cutFits(key []byte, length int) bool {
	slash := bytes.LastIndexByte(key[:min(156, len(key))], '/')
	return length <= 256 && slash > 0 && length-slash-1 <= 100
}

// cutName returns the place of the slash at which a longer name is cut into
// prefix and name, or 0 if there is none: the last that leaves a prefix that
// fits, and a name of at least one byte.
func cutName(name []byte) int {
	if len(name) > 256 {
		return 0
	}
	slash := bytes.LastIndexByte(name[:min(156, len(name)-1)], '/')
	if slash <= 0 || len(name)-slash-1 > 100 {
		return 0
	}
	return slash
}

// putName writes a name that fits a ustar header, and reports whether it does.
func putName(b *block, name []byte) bool {
	if !fitsPlain(name) {
		return false
	}
	if len(name) > 100 {
		slash := cutName(name)
		copy(b[345:500], name[:slash])
		name = name[slash+1:]
	}
	copy(b[0:100], name)
	return true
}

// putPlain writes what a reader that does not know pax will see: the end of the
// name, which tells more than its beginning, with "?" for what is not ASCII.
func putPlain(b *block, name []byte) {
	name = name[max(0, len(name)-100):]
	for i, c := range name {
		if c >= 0x80 {
			c = '?'
		}
		b[i] = c
	}
}
