package shard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"

	"shardtool/format"
)

// placement moves files that were written aside to their places in a folder: all
// of them, or none. What stands in the way is found before the first is moved;
// if a move fails all the same, those before it are taken back.
type placement struct {
	ctx    context.Context
	folder string // for errors
	to     *os.Root
	stage  string // in the folder: new/ holds the files, old/ those that they replace
	force  bool

	sound map[string]bool // folders that are there, or that nothing keeps from being made
	made  []string        // folders, the outer ones first
	moved []move
}

// move is one file that is in its place.
type move struct {
	name string
	old  string // where the file is that it replaced; "" if there was none
}

// place moves files by their names, with slashes.
func (p *placement) place(names []string) error {
	p.sound = make(map[string]bool)
	for _, name := range names {
		if err := p.check(name); err != nil {
			return err
		}
	}
	for _, name := range names {
		err := p.ctx.Err()
		if err == nil {
			err = p.move(name)
		}
		if err != nil {
			err = format.ReadError(err, p.at(name))
			if e := p.takeBack(); e != nil {
				err = fmt.Errorf("%w; and moving others could not be undone: %v", err, e)
			}
			return err
		}
	}
	return nil
}

func (p *placement) at(name string) format.Location { return format.In(path.Join(p.folder, name)) }

// check reports what is in the way of a file.
func (p *placement) check(name string) error {
	for i := range len(name) {
		if name[i] != '/' || p.sound[name[:i]] {
			continue
		}
		there, err := p.checkFolder(name[:i])
		if err != nil {
			return err
		}
		p.sound[name[:i]] = true
		if !there {
			return nil
		}
	}
	st, err := p.to.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return format.ReadError(err, p.at(name))
	case st.IsDir():
		return format.Errorf(format.ErrUsage, p.at(name), "a folder is where a file would be")
	case !p.force:
		return format.Errorf(format.ErrUsage, p.at(name), "exists already; --force replaces it")
	}
	return nil
}

// checkFolder reports whether a folder is there. What is no folder, or a link
// that leads nowhere or out, is an error.
func (p *placement) checkFolder(name string) (there bool, err error) {
	st, err := p.to.Stat(name)
	switch {
	case err == nil && st.IsDir():
		return true, nil
	case err == nil:
		return false, format.Errorf(format.ErrUsage, p.at(name), "is in the way of a folder")
	}
	st, e := p.to.Lstat(name)
	switch {
	case errors.Is(e, fs.ErrNotExist):
		return false, nil
	case e == nil && st.Mode()&fs.ModeSymlink != 0:
		return false, format.Errorf(format.ErrUsage, p.at(name), "a link that leads to no folder within is in the way: %v", err)
	}
	return false, format.ReadError(err, p.at(name))
}

func (p *placement) move(name string) error {
	if err := p.makeFolders(path.Dir(name)); err != nil {
		return err
	}
	old, err := p.setAside(name)
	if err != nil {
		return err
	}
	p.moved = append(p.moved, move{name, old})
	if err := p.to.Rename(path.Join(p.stage, "new", name), name); err != nil {
		if old == "" {
			p.moved = p.moved[:len(p.moved)-1]
		}
		return err
	}
	return nil
}

// makeFolders makes a folder and those around it, as far as they are not there.
func (p *placement) makeFolders(name string) error {
	if name == "." {
		return nil
	}
	if st, err := p.to.Stat(name); err == nil && st.IsDir() {
		return nil
	}
	if err := p.makeFolders(path.Dir(name)); err != nil {
		return err
	}
	err := p.to.Mkdir(name, 0o777)
	if err == nil {
		p.made = append(p.made, name)
	}
	return err
}

// setAside keeps a file that is there, and returns where. By a second link, so
// that the name is never without a file, where the file system has links.
func (p *placement) setAside(name string) (old string, err error) {
	if _, err := p.to.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	old = path.Join(p.stage, "old", strconv.Itoa(len(p.moved)))
	if err := p.to.Link(name, old); err == nil {
		return old, nil
	}
	return old, p.to.Rename(name, old)
}

// takeBack undoes what was done, the last first.
func (p *placement) takeBack() error {
	var failed error
	for i := len(p.moved) - 1; i >= 0; i-- {
		m := p.moved[i]
		var err error
		if m.old == "" {
			err = p.to.Remove(m.name)
		} else {
			err = p.to.Rename(m.old, m.name)
		}
		failed = errors.Join(failed, format.ReadError(err, p.at(m.name)))
	}
	for i := len(p.made) - 1; i >= 0; i-- {
		_ = p.to.Remove(p.made[i]) // somebody else may have put something there
	}
	return failed
}
