//go:build race

package compress_test

const raceDetector = true
