//go:build !linux

package main

func makeCold(string) bool { return false }
