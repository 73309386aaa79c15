package augment

// StreamOfState makes a stream as published vectors do, by its state.
func StreamOfState(state uint64) Stream { return Stream{state} }
