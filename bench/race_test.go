//go:build race

package bench

const raced = true // which makes all of it many times slower
