package augment

import "image"

// StreamOfState makes a stream as published vectors do, by its state.
func StreamOfState(state uint64) Stream { return Stream{state} }

// Unfold has all operations done to pictures of 8 bits.
func (p *Plan) Unfold() {
	p.geometry, p.folded, p.Crop = whole(p.Size), 0, image.Rectangle{Max: p.Size}
}
