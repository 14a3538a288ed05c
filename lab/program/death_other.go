//go:build !linux

package program

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
