// Package plot draws small charts as SVG: points, lines and error bars over
// linear or logarithmic axes, and rows of stacked bars.
//
//	title                      ┌ what is named
//	 ■ a series  ● another     ┘
//	 ▲ 40 ┤ · · · · · ● · ·
//	 y    │     ●──●           grid at ticks of 1, 2, 5 times a power of ten,
//	   20 ┤ · ·╱· · · · · ·    or at powers of two
//	      │  ●╱
//	    0 ┼──┬──┬──┬──┬───▶
//	      1  2  4  8  16  x
//
// A drawing is a page of its own: text stays text, colours follow the
// reader's light or dark scheme (prefers-color-scheme in the drawing itself),
// and series differ by the shapes of their marks besides. The same values give
// the same bytes.
package plot

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// Drawing is a Chart or Bars.
type Drawing interface {
	// draw draws at the top of the canvas's free part and returns how high it is.
	draw(c *canvas) float64
	// heading is what the drawing shows, in words.
	heading() string
}

// Write writes one SVG with the drawings below each other. Names and titles may
// be any text.
func Write(w io.Writer, drawings ...Drawing) error {
	var c canvas
	heading := ""
	for i, d := range drawings {
		if i > 0 {
			c.top += between
			heading += "; "
		}
		c.top += d.draw(&c)
		heading += d.heading()
	}
	var b bytes.Buffer
	height := number(c.top + margin)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%s" viewBox="0 0 %d %s" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", escape(heading), style)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%s"/>`+"\n", width, height)
	b.Write(c.b.Bytes())
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// Sizes are in pixels.
const (
	width   = 680
	margin  = 14 // at the edge of the page
	between = 18 // drawings
	line    = 18 // of text
)

// The colours of series are told apart by people who see fewer, and stand out
// from the paper of their scheme.
var (
	onLight = []string{"#0067a8", "#c04f00", "#00795a", "#9c3f86", "#806600", "#4a5560"}
	onDark  = []string{"#5cb8f2", "#ff9857", "#3fcf9f", "#e793cb", "#dfbd4d", "#b4bec8"}
)

const colours = 6

var style = styleSheet()

func styleSheet() string {
	var b bytes.Buffer
	scheme := func(paper, ink, soft, grid string, series []string) {
		fmt.Fprintf(&b, ".paper,.open{fill:%s}text{fill:%s}.soft{fill:%s}.grid{stroke:%s}.axis{stroke:%s}", paper, ink, soft, grid, soft)
		for i, colour := range series {
			fmt.Fprintf(&b, ".s%d{stroke:%s}.f%d{fill:%s}", i, colour, i, colour)
		}
	}
	b.WriteString("text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}.head{font-size:14px;font-weight:600}" +
		".line{fill:none;stroke-width:2;stroke-linejoin:round}.dash{stroke-dasharray:6 4}.mark{stroke-width:1.5}.grid,.axis{stroke-width:1}")
	scheme("#ffffff", "#1f2328", "#59636e", "#dde3e9", onLight)
	b.WriteString("@media(prefers-color-scheme:dark){")
	scheme("#0d1117", "#e6edf3", "#9aa5b1", "#2b333d", onDark)
	b.WriteString("}")
	return b.String()
}

// canvas gathers the elements of a page.
type canvas struct {
	b   bytes.Buffer
	top float64 // of what is free
}

// element writes one element; pairs are the names and values of its attributes.
func (c *canvas) element(name, class string, pairs ...any) {
	fmt.Fprintf(&c.b, "<%s", name)
	if class != "" {
		fmt.Fprintf(&c.b, ` class="%s"`, class)
	}
	for i := 0; i < len(pairs); i += 2 {
		v := pairs[i+1]
		if f, ok := v.(float64); ok {
			v = number(f)
		}
		fmt.Fprintf(&c.b, ` %s="%v"`, pairs[i], v)
	}
	c.b.WriteString("/>\n")
}

// The places of a text beside its point.
const (
	atStart = "start"
	atMid   = "middle"
	atEnd   = "end"
)

func (c *canvas) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" text-anchor="%s"`, number(x), number(y), anchor)
	if class != "" {
		fmt.Fprintf(&c.b, ` class="%s"`, class)
	}
	fmt.Fprintf(&c.b, ">%s</text>\n", escape(text))
}

// upright writes a text that reads from the bottom to the top.
func (c *canvas) upright(x, y float64, text string) {
	fmt.Fprintf(&c.b, `<text transform="translate(%s %s) rotate(-90)" text-anchor="middle" class="soft">%s</text>`+"\n", number(x), number(y), escape(text))
}

// key is an entry of a legend: its mark and its name.
type key struct {
	name string
	mark func(x, y float64)
}

// heading writes the title and the legend, and returns how high they are.
func (c *canvas) heading(title string, keys []key) float64 {
	y := c.top + margin
	if title != "" {
		y += line
		c.text(margin, y-4, atStart, "head", title)
	}
	x := float64(width) // so that the first key begins a line
	for _, k := range keys {
		if k.name == "" {
			continue
		}
		need := 26 + textWidth(k.name) + 14
		if x+need > width {
			x, y = margin, y+line
		}
		k.mark(x+10, y-4)
		c.text(x+26, y, atStart, "", k.name)
		x += need
	}
	return y + 12 - c.top
}

// textWidth estimates how wide a text is: no font is at hand.
func textWidth(s string) float64 { return 7 * float64(utf8.RuneCountInString(s)) }

// number writes a coordinate to a hundredth of a pixel.
func number(v float64) string {
	v = math.Round(v*100) / 100
	if v == 0 { // and not -0
		return "0"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// escape makes text of XML: what XML cannot hold becomes a replacement
// character.
func escape(s string) string {
	valid := bytes.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff {
			return utf8.RuneError
		}
		return r
	}, []byte(s))
	return html.EscapeString(string(valid))
}
