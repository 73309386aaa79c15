package shard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"shardtool/format"
)

// treeOf makes files, "name=content", folders, "name/", and links, "name>to".
func treeOf(t *testing.T, dir string, entries ...string) {
	t.Helper()
	for _, e := range entries {
		var err error
		at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
		if name, to, ok := strings.Cut(e, ">"); ok {
			if err = os.Symlink(to, at(name)); err != nil {
				t.Skip("no symbolic links here:", err)
			}
		} else if name, ok := strings.CutSuffix(e, "/"); ok {
			err = os.MkdirAll(at(name), 0o777)
		} else {
			name, content, _ := strings.Cut(e, "=")
			err = errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o777), os.WriteFile(at(name), []byte(content), 0o666))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// treeText lists what treeOf makes.
func treeText(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir():
			all = append(all, name+"/")
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			all = append(all, name+">"+to)
			return err
		default:
			content, err := os.ReadFile(path)
			all = append(all, name+"="+string(content))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// TestPlacementIsAllOrNothing moves the files a.txt, d/b.txt, d/e/c.txt and
// z.txt to where something may stand.
func TestPlacementIsAllOrNothing(t *testing.T) {
	const placed = "a.txt=new d/ d/b.txt=new d/e/ d/e/c.txt=new z.txt=new"
	names := []string{"a.txt", "d/b.txt", "d/e/c.txt", "z.txt"}
	for _, tt := range []struct {
		name  string
		there []string
		force bool
		lost  string // a file that is not there to be moved
		want  string // after it; "": as before
		at    string // of the fault
		class error
	}{
		{name: "nothing in the way", want: placed},
		{name: "folders are there", there: []string{"d/e/"}, want: placed},
		{name: "others are left", there: []string{"d/e/c.jpg=old"}, want: strings.Replace(placed, "d/e/c.txt", "d/e/c.jpg=old d/e/c.txt", 1)},
		{name: "replaced", there: []string{"z.txt=old", "d/e/c.txt=old"}, force: true, want: placed},
		{name: "a link is replaced, not what it leads to", there: []string{"z.txt>y", "y=old"}, force: true, want: strings.Replace(placed, "z.txt", "y=old z.txt", 1)},
		{name: "a link to a folder within", there: []string{"real/", "d>real"}, want: "a.txt=new d>real real/ real/b.txt=new real/e/ real/e/c.txt=new z.txt=new"},

		{name: "exists", there: []string{"z.txt=old"}, at: "z.txt", class: format.ErrUsage},
		{name: "a file for a folder", there: []string{"d/e=old"}, at: "d/e", class: format.ErrUsage},
		{name: "a file for the outer folder", there: []string{"d=old"}, force: true, at: "d", class: format.ErrUsage},
		{name: "a folder for a file", there: []string{"z.txt/"}, force: true, at: "z.txt", class: format.ErrUsage},
		{name: "a link to nothing", there: []string{"d>none"}, at: "d", class: format.ErrUsage},
		{name: "a link to a file", there: []string{"f=old", "d>f"}, at: "d", class: format.ErrUsage},
		{name: "a link out", there: []string{"d>../outside"}, at: "d", class: format.ErrUsage},

		{name: "a move fails", lost: "d/e/c.txt", at: "d/e/c.txt", class: format.ErrNotFound},
		{name: "a move fails after others replaced", there: []string{"a.txt=old", "d/b.txt=old", "d/e/c.txt=old"}, force: true, lost: "z.txt", at: "z.txt", class: format.ErrNotFound},
		{name: "a replacing move fails", there: []string{"z.txt=old"}, force: true, lost: "z.txt", at: "z.txt", class: format.ErrNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			treeOf(t, top, "outside/", "in/.stage/new/", "in/.stage/old/")
			dir := filepath.Join(top, "in")
			treeOf(t, dir, tt.there...)
			for _, name := range names {
				if name != tt.lost {
					treeOf(t, dir, ".stage/new/"+name+"=new")
				}
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			p := &placement{ctx: t.Context(), folder: dir, to: root, stage: ".stage", force: tt.force}
			err = p.place(names)
			if e := errors.Join(root.Close(), os.RemoveAll(filepath.Join(dir, ".stage"))); e != nil {
				t.Fatal(e)
			}
			want := tt.want
			if want == "" {
				before := t.TempDir()
				treeOf(t, before, tt.there...)
				want = treeText(t, before)
			}
			if got := treeText(t, dir); got != want {
				t.Errorf("there is %s; want %s", got, want)
			}
			if got := treeText(t, filepath.Join(top, "outside")); got != "" {
				t.Errorf("outside there is %s", got)
			}
			if tt.class == nil {
				if err != nil {
					t.Error(err)
				}
			} else if e := format.AsError(err); !errors.Is(err, tt.class) || e.Shard != filepath.ToSlash(dir)+"/"+tt.at {
				t.Errorf("%v; want %v at %s", fmt.Sprint(err), tt.class, tt.at)
			}
		})
	}
}
