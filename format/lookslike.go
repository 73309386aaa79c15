package format

import "bytes"

// LooksLike says in words what the first bytes of a file look like, for the
// message of an ErrWrongFormat: "a Git LFS pointer", "a tar archive". It
// returns "" where it has no idea. 512 bytes are enough. It goes by magic
// numbers alone and is no test of a format.
func LooksLike(prefix []byte) string {
	for _, m := range magics {
		if len(prefix) >= m.at+len(m.magic) && string(prefix[m.at:m.at+len(m.magic)]) == m.magic {
			return m.name
		}
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(prefix, []byte("\xef\xbb\xbf")), " \t\r\n")
	for _, m := range markups {
		if len(text) >= len(m.magic) && EqualName(string(text[:len(m.magic)]), m.magic) {
			return m.name
		}
	}
	return ""
}

type magic struct {
	at    int
	magic string
	name  string
}

var magics = []magic{
	{0, "version https://git-lfs.github.com/spec/", "a Git LFS pointer: the file itself was not fetched (git lfs pull)"},
	{257, "ustar", "a tar archive"},
	{0, "\x1f\x8b", "a gzip stream"},
	{0, "\x28\xb5\x2f\xfd", "a zstd stream"},
	{0, "BZh", "a bzip2 stream"},
	{0, "\xfd7zXZ\x00", "an xz stream"},
	{0, "\x04\x22\x4d\x18", "an lz4 stream"},
	{0, "PK\x03\x04", "a zip archive"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{0, "PAR1", "a Parquet file"},
	{0, "ARROW1", "an Arrow file"},
	{0, "\x89HDF\r\n\x1a\n", "an HDF5 file"},
	{0, "\x93NUMPY", "a NumPy array"},
	{0, "SQLite format 3\x00", "an SQLite database"},
	{0, "\xff\xd8\xff", "a JPEG image"},
	{0, "\x89PNG\r\n\x1a\n", "a PNG image"},
	{0, "GIF8", "a GIF image"},
	{0, "RIFF", "a RIFF file (WebP, WAV or AVI)"},
	{0, "%PDF-", "a PDF file"},
	{0, "\x7fELF", "an ELF executable"},
}

var markups = []magic{
	{0, "<?xml", "an XML document, perhaps the error page of an object store"},
	{0, "<error", "an XML document, perhaps the error page of an object store"},
	{0, "<!doctype html", "an HTML page"},
	{0, "<html", "an HTML page"},
	{0, "{", "a JSON document"},
}
