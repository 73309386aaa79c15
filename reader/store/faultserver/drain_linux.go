package faultserver

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// drain waits until the other side's system has acknowledged all that was
// written, or five seconds.
func drain(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	for range 5000 {
		left := 0
		err := raw.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
		if left == 0 || err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
