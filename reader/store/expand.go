package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"shardtool/format"
)

// Stater is an optional interface of a Store that can describe an object
// without opening it. The Size of what is no regular file is format.Unknown. A
// folder is no object.
type Stater interface {
	Stat(ctx context.Context, name string) (Entry, error)
}

// Stat describes the object of that name, by the store's Stater if it is one,
// else by opening it.
func Stat(ctx context.Context, st Store, name string) (Entry, error) {
	if s, ok := st.(Stater); ok {
		return s.Stat(ctx, name)
	}
	o, err := st.Open(ctx, name)
	if err != nil {
		return Entry{}, err
	}
	e := o.Stat()
	return e, o.Close()
}

// Globber is an optional interface of a Store that finds the names that match a
// pattern with less work than listing everything under its first part. The
// names come in byte order; none is no error.
type Globber interface {
	Glob(ctx context.Context, pattern string) ([]string, error)
}

// Expand turns patterns, as people write them, into names of objects:
//
//	train-{000..127}.tar   a brace list, as webdataset's
//	data/*.tar             a glob: * and ? do not cross a slash, ** does, [a-z] is a class
//	a.tar::b.tar           several patterns joined
//	-                      standard input
//
// The names stand in the order given, the matches of one glob in byte order.
// What exists under exactly the name written is taken as it is, but of names
// with "://" that is not asked. A backslash takes the meaning from the character
// after it (on Windows only in names with "://"); of "::", from both. Names of
// hidden local files match no * or ?. Addresses that begin with http:// or
// https:// have braces but no globs, since they cannot be listed.
//
// A glob without a match is ErrNotFound; a folder, an empty name or a brace
// without its partner is ErrUsage; more than a million names, or 128 MiB of
// them, are ErrLimit. A name without a glob need not exist.
func Expand(ctx context.Context, st Store, patterns ...string) ([]string, error) {
	e := expansion{ctx: ctx, st: st}
	for _, p := range patterns {
		if err := e.pattern(p); err != nil {
			return nil, err
		}
	}
	return e.names, nil
}

type expansion struct {
	ctx   context.Context
	st    Store
	names []string
	bytes int
}

func (e *expansion) pattern(pattern string) error {
	special := strings.ContainsAny(pattern, `*?[]{}\`) || strings.Contains(pattern, "::")
	if special && e.exists(pattern) {
		return e.add(pattern)
	}
	for _, one := range splitJoined(pattern) {
		if one == "" {
			return patternError(format.ErrUsage, pattern, "an empty path")
		}
		b, err := parseBraces(one, escapes(one), 0)
		if err != nil {
			return err
		}
		if len(e.names)+b.count() > maxNames {
			return tooMany(one)
		}
		b.each(nil, func(name []byte) bool {
			err = e.glob(string(name))
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// splitJoined splits at "::", but not in the address of an IPv6 host.
func splitJoined(s string) []string {
	var parts []string
	escape := escapes(s)
	start := 0
	for i := 0; i < len(s); i++ {
		switch {
		case escape && s[i] == '\\':
			i++
			if strings.HasPrefix(s[i:], "::") {
				i++
			}
		case strings.HasPrefix(s[i:], "://["):
			if end := strings.IndexByte(s[i:], ']'); end > 0 {
				i += end
			}
		case strings.HasPrefix(s[i:], "::"):
			parts = append(parts, s[start:i])
			i++
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// escapes reports whether a backslash is an escape and not part of a path.
func escapes(name string) bool {
	return runtime.GOOS != "windows" || strings.Contains(name, "://")
}

// IsAddress reports whether a name leads over the network.
func IsAddress(name string) bool {
	return strings.Contains(name, "://") && !strings.HasPrefix(name, "file://")
}

// exists asks about names that are paths; a request over the network for each
// would cost more than the doubt is worth.
func (e *expansion) exists(name string) bool {
	if IsAddress(name) {
		return false
	}
	_, err := Stat(e.ctx, e.st, name)
	return err == nil
}

// glob takes one name without braces.
func (e *expansion) glob(name string) error {
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if !isGlob(name) {
		if escapes(name) {
			name = unescape(name)
		}
		return e.literal(name)
	}
	if strings.ContainsAny(name, "*?[") && e.exists(name) {
		return e.add(name)
	}
	if !doublestar.ValidatePattern(globPattern(name)) {
		return patternError(format.ErrUsage, name, "a bracket is not closed, or a class is empty")
	}
	names, err := Glob(e.ctx, e.st, name)
	if err != nil {
		return globError(name, err)
	}
	if len(names) == 0 {
		return patternError(format.ErrNotFound, name, "nothing matches")
	}
	for _, n := range names {
		if err := e.add(n); err != nil {
			return err
		}
	}
	return nil
}

// globError names a glob, and not only what all its matches begin with, which
// is what a store was asked to list.
func globError(pattern string, err error) error {
	e, ok := err.(*format.Error)
	if !ok || !strings.HasPrefix(pattern, e.Shard) && !strings.HasPrefix(globPrefix(pattern), e.Shard) {
		return nameError(pattern, err)
	}
	c := *e
	c.Shard = pattern
	return &c
}

func (e *expansion) literal(name string) error {
	// Only paths can be folders; of other names this would be a request each.
	s, ok := e.st.(Stater)
	if !ok || IsAddress(name) {
		return e.add(name)
	}
	if _, err := s.Stat(e.ctx, name); errors.Is(err, errIsFolder) {
		folder := strings.TrimRight(name, `/\`)
		return patternError(format.ErrUsage, name, "is a folder; write %s/*.tar for the shards in it, or %s/**/*.tar for those in its folders too", folder, folder)
	}
	return e.add(name)
}

func (e *expansion) add(name string) error {
	e.bytes += len(name)
	switch {
	case name == "":
		return format.Errorf(format.ErrUsage, format.Nowhere, "an empty path")
	case len(e.names) == maxNames || e.bytes > maxNameBytes:
		return tooMany(name)
	}
	e.names = append(e.names, name)
	return nil
}

func tooMany(name string) error {
	return patternError(format.ErrLimit, name, "the patterns stand for more than %d names, or for more than %d bytes of names", maxNames, maxNameBytes)
}

// Glob returns the names of objects that match one glob, without braces, in byte
// order: by the store's Globber if it is one, else by listing all that begin as
// the pattern does.
func Glob(ctx context.Context, st Store, pattern string) ([]string, error) {
	if g, ok := st.(Globber); ok {
		return g.Glob(ctx, pattern)
	}
	glob := globPattern(pattern)
	var names []string
	for entry, err := range st.List(ctx, globPrefix(pattern)) {
		if err != nil {
			return nil, err
		}
		if ok, _ := doublestar.Match(glob, entry.Name); !ok {
			continue
		}
		if len(names) == maxNames {
			return nil, patternError(format.ErrLimit, pattern, "matches more than %d names", maxNames)
		}
		names = append(names, entry.Name)
	}
	return names, nil
}

// isGlob reports whether a name has a glob's characters, not escaped.
func isGlob(name string) bool {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return false
	}
	escape := escapes(name)
	for i := 0; i < len(name); i++ {
		switch {
		case escape && name[i] == '\\':
			i++
		case strings.IndexByte("*?[", name[i]) >= 0:
			return true
		}
	}
	return false
}

func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// globPrefix returns what all matches begin with.
func globPrefix(pattern string) string {
	escape := escapes(pattern)
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case escape && c == '\\':
			i++
		case strings.IndexByte("*?[", c) >= 0:
			return unescapeIf(escape, pattern[:i])
		}
	}
	return unescapeIf(escape, pattern)
}

func unescapeIf(escape bool, s string) string {
	if escape {
		return unescape(s)
	}
	return s
}

// globPattern makes of a pattern what doublestar understands on every system:
// slashes, backslashes that escape, and braces that are ordinary characters.
func globPattern(pattern string) string {
	escape := escapes(pattern)
	if !escape {
		pattern = filepath.ToSlash(pattern)
	}
	if !strings.ContainsAny(pattern, "{}") {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case escape && c == '\\' && i+1 < len(pattern):
			b.WriteByte(c)
			i++
		case c == '{' || c == '}':
			b.WriteByte('\\')
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

// Stat describes a file without opening it.
func (l *Local) Stat(ctx context.Context, name string) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	if name == "-" {
		return Entry{Name: name, Size: format.Unknown}, nil
	}
	st, err := os.Stat(localPath(name))
	switch {
	case err != nil:
		return Entry{}, nameError(name, err)
	case st.IsDir():
		return Entry{}, nameError(name, &fs.PathError{Op: "stat", Path: name, Err: errIsFolder})
	case !st.Mode().IsRegular():
		return Entry{Name: name, Size: format.Unknown}, nil
	}
	return entry(name, st), nil
}

// Glob finds files by walking only the folders that the pattern names. Links
// to folders are followed, except below a "**", where they could lead around
// in a circle.
func (l *Local) Glob(ctx context.Context, pattern string) ([]string, error) {
	base, rest := doublestar.SplitPattern(globPattern(localPath(pattern)))
	options := []doublestar.GlobOption{doublestar.WithNoHidden(), doublestar.WithFailOnIOErrors()}
	if strings.Contains(rest, "**") {
		options = append(options, doublestar.WithNoFollow())
	}
	var names []string
	err := doublestar.GlobWalk(contextFS{ctx, os.DirFS(base)}, rest, func(match string, d fs.DirEntry) error {
		name := filepath.Join(base, filepath.FromSlash(match))
		if d.IsDir() || isTemporary(d.Name()) {
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			if st, err := os.Stat(name); err == nil && st.IsDir() {
				return nil
			}
		}
		if len(names) == maxNames {
			return patternError(format.ErrLimit, pattern, "matches more than %d files", maxNames)
		}
		names = append(names, name)
		return nil
	}, options...)
	slices.Sort(names)
	return names, nameError(pattern, err)
}

// contextFS stops a walk when its context ends.
type contextFS struct {
	ctx  context.Context
	fsys fs.FS
}

func (c contextFS) Open(name string) (fs.File, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	return c.fsys.Open(name)
}

func (c contextFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	return fs.ReadDir(c.fsys, name)
}

func (c contextFS) Stat(name string) (fs.FileInfo, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	return fs.Stat(c.fsys, name)
}
