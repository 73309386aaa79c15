package order

// Buffer returns how many samples Stream keeps in its buffer, over all lanes.
func (s Shuffle) Buffer() int { return s.buffer }
