//go:build !race

package tfexample_test

const raceDetector = false
