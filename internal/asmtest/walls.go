package asmtest

// TB is what Walled needs of a test, an ordinary one or one of rapid.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}
