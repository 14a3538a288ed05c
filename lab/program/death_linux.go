package program

import "syscall"

// attributes makes the kernel kill the process when the thread that started it ends.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
