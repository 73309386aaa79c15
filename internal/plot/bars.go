package plot

// Part is one share of every row of Bars.
type Part struct {
	Name   string // in the legend
	Values []float64
}

// Bars is a row for each name, of parts side by side that add up.
type Bars struct {
	Title string
	Axis  Axis // of the values, from 0
	Rows  []string
	Parts []Part // each with a value for every row; what is missing, not finite or negative is 0
}

func (b *Bars) heading() string { return b.Title }

const rowHeight = 26

func (b *Bars) draw(c *canvas) float64 {
	begin := c.top
	var keys []key
	for i, p := range b.Parts {
		keys = append(keys, key{p.Name, func(x, y float64) { c.bar(i, x-8, y-5, 16, 10) }})
	}
	top := begin + c.heading(b.Title, keys) + 4
	bottom := top + rowHeight*float64(len(b.Rows))
	left, right := float64(margin), float64(width-margin-20)
	most := 0.0
	for row, name := range b.Rows {
		left = max(left, margin+8+textWidth(name))
		sum := 0.0
		for i := range b.Parts {
			sum += b.Parts[i].value(row)
		}
		most = max(most, sum)
	}
	axis := Axis{Min: b.Axis.Min, Max: b.Axis.Max}
	e := axis.settle(0, most)
	for _, t := range e.ticks {
		at, _ := e.at(t.at)
		px := left + at*(right-left)
		c.element("line", "grid", "x1", px, "y1", top, "x2", px, "y2", bottom+4)
		c.text(px, bottom+line, atMid, "soft", t.name)
	}
	c.text((left+right)/2, bottom+2*line+2, atMid, "soft", b.Axis.Label)
	for row, name := range b.Rows {
		y := top + rowHeight*float64(row)
		c.text(left-6, y+rowHeight/2+4, atEnd, "", name)
		x := left
		for i := range b.Parts {
			from, _ := e.at(0)
			to, _ := e.at(b.Parts[i].value(row))
			if wide := (to - from) * (right - left); wide > 0 {
				c.bar(i, x, y+4, wide, rowHeight-8)
				x += wide
			}
		}
	}
	return bottom + 2*line + 8 - begin
}

func (p *Part) value(row int) float64 {
	if row >= len(p.Values) {
		return 0
	}
	if _, ok := Linear.place(p.Values[row]); !ok || p.Values[row] < 0 {
		return 0
	}
	return p.Values[row]
}

func (c *canvas) bar(i int, x, y, wide, high float64) {
	c.element("rect", "f"+string(rune('0'+i%colours)), "x", x, "y", y, "width", wide, "height", high)
}
