//go:build race

package store_test

// raceEnabled: pools drop what they hold at random then.
const raceEnabled = true
