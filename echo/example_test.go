package echo_test

import (
	"fmt"
	"iter"

	"shardtool/echo"
)

// A pipeline of one's own: photos come slowly, so each is given twice. The
// copies are kept apart by a buffer, augmented each by itself, and gathered.
func Example() {
	fetch := func(yield func(string, error) bool) {
		for _, name := range []string{"ant", "bee", "cat", "dog"} {
			if !yield(name, nil) {
				return
			}
		}
	}
	photos := echo.Shuffle(echo.Repeat(fetch, 2), 5, 1)
	for batch, err := range echo.Batches(augment(photos), 4, true) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(batch), "photos")
	}
	// Output:
	// 4 photos
	// 4 photos
}

func augment(photos iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for photo, err := range photos {
			if !yield(photo+", cropped", err) {
				return
			}
		}
	}
}

// A factor that is not whole is kept to by the sum.
func ExampleRepeat() {
	numbers := func(yield func(int, error) bool) {
		for n := range 6 {
			if !yield(n, nil) {
				return
			}
		}
	}
	for n := range echo.Repeat(numbers, 1.5) {
		fmt.Print(n, " ")
	}
	// Output: 0 1 1 2 3 3 4 5 5
}

// What a network that is six times as slow as a step is good for.
func ExampleCosts_Recommend() {
	c := echo.Costs{Fetch: 2.4e-3, Decode: 0.2e-3, Augment: 0.1e-3, Step: 0.4e-3}
	a := c.Recommend()
	fmt.Printf("%v %v, factor %v: %.0f samples a second become %.0f\n", a.Unit, a.Keep, a.Factor, 1/c.PerEmission(echo.Sample, echo.Bytes, 1), a.EmittedPerS)
	// Output: sample bytes, factor 6: 417 samples a second become 2500
}
